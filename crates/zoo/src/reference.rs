//! Reference outputs in double precision, whole or sampled.

use crate::gate::projection::Projection;
use crate::signed_sums::{ROWS_PER_PARTIAL_SUM, sign};
use crate::{Matrix, OutputQuery, OutputSample};
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::{FloatType, QuantConfig, RecipeError, Weight};
use rayon::prelude::*;

/// Elements above which work is divided among threads.
const MIN_PARALLEL_LEN: usize = 1 << 16;

/// Sampled values of a correct output.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// Sampled rows and columns.
    pub sample: OutputSample,
    /// Values in the order of [`OutputSample::position`].
    pub values: Vec<f64>,
    /// Signed sums of the whole output, if it was only sampled and they are computable.
    pub projection: Option<Projection>,
}

impl Reference {
    /// Query for the data of an output that is compared with this reference.
    pub fn query(&self) -> OutputQuery<'_> {
        OutputQuery { sample: &self.sample, sums: self.projection.is_some() }
    }
}

/// Linear layer in double precision with the quantized operands that a correct kernel multiplies.
#[derive(Debug, Clone)]
pub struct ExactLinear {
    weight: Weight,
    treatment: QuantConfig,
}

impl ExactLinear {
    /// Layer with the weight as a recipe quantizes it.
    pub fn new(weight: &Weight, treatment: &QuantConfig) -> Result<Self, RecipeError> {
        Ok(Self { weight: treatment.effective_weight(weight)?, treatment: *treatment })
    }

    /// Sampled elements of the output for an input of `rows` rows; `row` returns one row of the input.
    pub fn sampled_output(
        &self,
        sample: &OutputSample,
        rows: usize,
        row: impl Fn(usize) -> Vec<f64> + Sync,
    ) -> Vec<f64> {
        let whole = self.treatment.input_format(rows).is_some_and(|format| format.needs_tensor_amax());
        let inputs: Vec<Vec<f64>> = if whole {
            let mut all = vec![0.0; rows * self.weight.k()];
            all.par_chunks_mut(self.weight.k()).enumerate().for_each(|(at, values)| values.copy_from_slice(&row(at)));
            let all = self.quantized_input(&all, rows);
            sample.rows.iter().map(|&r| all[r * self.weight.k()..][..self.weight.k()].to_vec()).collect()
        } else {
            sample.rows.par_iter().map(|&r| self.quantized_input(&row(r), rows)).collect()
        };
        let dots = |x: &Vec<f64>| sample.cols.iter().map(|&c| dot(x, self.weight.row(c))).collect::<Vec<f64>>();
        inputs.par_iter().flat_map_iter(dots).collect()
    }

    /// Signed row and column sums of the whole output, from matrix-vector products only.
    pub fn projection(&self, input: &Matrix) -> Projection {
        let (n, k, rows) = (self.weight.n(), self.weight.k(), input.rows);
        let quantized = self.treatment.effective_input(&input.values, k);
        let values: &[f32] = quantized.as_deref().unwrap_or(&input.values);
        let exact = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        project_matmul([rows, k, n], |row| exact(&values[row * k..][..k]), |col| exact(self.weight.row(col)))
    }

    /// Computes the whole output.
    pub fn whole_output(&self, input: &[f64]) -> Vec<f64> {
        let k = self.weight.k();
        let input = self.quantized_input(input, input.len() / k);
        let rows: Vec<&[f64]> = input.chunks(k).collect();
        let columns: Vec<Vec<f64>> = (0..self.weight.n())
            .into_par_iter()
            .map(|c| rows.iter().map(|x| dot(x, self.weight.row(c))).collect())
            .collect();
        (0..rows.len()).flat_map(|r| columns.iter().map(move |column| column[r])).collect()
    }

    /// Returns the values that an input represents after quantization. `rows` is the number of rows of the whole input.
    fn quantized_input(&self, input: &[f64], rows: usize) -> Vec<f64> {
        let Some(format) = self.treatment.input_format(rows) else { return input.to_vec() };
        let rounded = input.par_iter().with_min_len(MIN_PARALLEL_LEN);
        let rounded: Vec<f32> = rounded.map(|&x| self.treatment.dtype.round(x as f32)).collect();
        let numbers = quantize(&rounded, self.weight.k(), format).dequantize();
        numbers.into_par_iter().with_min_len(MIN_PARALLEL_LEN).map(f64::from).collect()
    }
}

/// Signed row and column sums of an `m` x `n` matmul with depth `k`.
pub(crate) fn project_matmul(
    [m, k, n]: [usize; 3],
    row: impl Fn(usize) -> Vec<f64> + Sync,
    col: impl Fn(usize) -> Vec<f64> + Sync,
) -> Projection {
    let sums = |lines: usize, line: &(dyn Fn(usize) -> Vec<f64> + Sync), of_others: &[f64]| -> Vec<f64> {
        let sum = |at: usize| line(at).iter().zip(of_others).map(|(x, other)| x * other).sum();
        (0..lines).into_par_iter().map(sum).collect()
    };
    let (of_rows, of_cols) = (sum_rows_with_signs(m, k, &row), sum_rows_with_signs(n, k, &col));
    Projection { rows: sums(m, &row, &of_cols), cols: sums(n, &col, &of_rows) }
}

/// Sum of rows under random signs.
fn sum_rows_with_signs(rows: usize, cols: usize, row: impl Fn(usize) -> Vec<f64> + Sync) -> Vec<f64> {
    let firsts: Vec<usize> = (0..rows).step_by(ROWS_PER_PARTIAL_SUM).collect();
    let some_rows = |&first: &usize| {
        let mut sums = vec![0.0; cols];
        for at in first..rows.min(first + ROWS_PER_PARTIAL_SUM) {
            let sign = sign(at);
            sums.iter_mut().zip(row(at)).for_each(|(sum, value)| *sum += sign * value);
        }
        sums
    };
    let parts: Vec<Vec<f64>> = firsts.par_iter().map(some_rows).collect();
    (0..cols).map(|col| parts.iter().map(|part| part[col]).sum()).collect()
}

/// Dot product with eight partial sums, because the compiler may not reorder floating-point additions.
pub(crate) fn dot(x: &[f64], w: &[f32]) -> f64 {
    let mut sums = [0.0; 8];
    let (x8, w8) = (x.chunks_exact(8), w.chunks_exact(8));
    let tail: f64 = x8.remainder().iter().zip(w8.remainder()).map(|(x, &w)| x * f64::from(w)).sum();
    for (x, w) in x8.zip(w8) {
        for i in 0..8 {
            sums[i] += x[i] * f64::from(w[i]);
        }
    }
    sums.iter().sum::<f64>() + tail
}
