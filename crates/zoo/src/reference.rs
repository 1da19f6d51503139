//! Outputs in double precision, of the whole output or of a sample of it.

use crate::gate::projection::Projection;
use crate::signed_sums::{TOGETHER, sign};
use crate::{Look, Matrix, Sample};
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::{FloatType, RecipeError, Treatment, Weight};
use rayon::prelude::*;

/// Threads share the work on more numbers than this.
const WORTH_SHARING: usize = 1 << 16;

/// What a correct output holds where it is sampled.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// Where.
    pub sample: Sample,
    /// What, in the order of [`Sample::position`].
    pub values: Vec<f64>,
    /// What the whole output adds up to, where that is known and more than was sampled.
    pub projection: Option<Projection>,
}

impl Reference {
    /// What of an output is compared with it.
    pub fn look(&self) -> Look<'_> {
        Look { sample: &self.sample, sums: self.projection.is_some() }
    }
}

/// A linear layer in double precision, on the operands that a correct kernel multiplies.
#[derive(Debug, Clone)]
pub struct ExactLinear {
    weight: Weight,
    treatment: Treatment,
}

impl ExactLinear {
    /// The layer that a recipe makes of a weight.
    pub fn new(weight: &Weight, treatment: &Treatment) -> Result<Self, RecipeError> {
        Ok(Self { weight: treatment.effective_weight(weight)?, treatment: *treatment })
    }

    /// The sampled entries of its output for an input of so many rows; `row` gives one of them.
    pub fn products(&self, sample: &Sample, rows: usize, row: impl Fn(usize) -> Vec<f64> + Sync) -> Vec<f64> {
        let whole = self.treatment.input(rows).is_some_and(|format| format.looks_at_the_whole_tensor());
        let inputs: Vec<Vec<f64>> = if whole {
            let mut all = vec![0.0; rows * self.weight.k()];
            all.par_chunks_mut(self.weight.k()).enumerate().for_each(|(at, values)| values.copy_from_slice(&row(at)));
            let all = self.operand(&all, rows);
            sample.rows.iter().map(|&r| all[r * self.weight.k()..][..self.weight.k()].to_vec()).collect()
        } else {
            sample.rows.par_iter().map(|&r| self.operand(&row(r), rows)).collect()
        };
        let dots = |x: &Vec<f64>| sample.cols.iter().map(|&c| dot(x, self.weight.row(c))).collect::<Vec<f64>>();
        inputs.par_iter().flat_map_iter(dots).collect()
    }

    /// What its whole output adds up to under random signs: two vectors through the operands, and no product of them.
    pub fn projection(&self, input: &Matrix) -> Projection {
        let (n, k, rows) = (self.weight.n(), self.weight.k(), input.rows);
        let quantized = self.treatment.effective_input(&input.values, k);
        let values: &[f32] = quantized.as_deref().unwrap_or(&input.values);
        let exact = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        projected([rows, k, n], |row| exact(&values[row * k..][..k]), |col| exact(self.weight.row(col)))
    }

    /// Its whole output.
    pub fn dense(&self, input: &[f64]) -> Vec<f64> {
        let k = self.weight.k();
        let input = self.operand(input, input.len() / k);
        let rows: Vec<&[f64]> = input.chunks(k).collect();
        let columns: Vec<Vec<f64>> = (0..self.weight.n())
            .into_par_iter()
            .map(|c| rows.iter().map(|x| dot(x, self.weight.row(c))).collect())
            .collect();
        (0..rows.len()).flat_map(|r| columns.iter().map(move |column| column[r])).collect()
    }

    /// What an input stands for once it is quantized: some of `rows` rows that the layer is given together.
    fn operand(&self, input: &[f64], rows: usize) -> Vec<f64> {
        let Some(format) = self.treatment.input(rows) else { return input.to_vec() };
        let rounded = input.par_iter().with_min_len(WORTH_SHARING);
        let rounded: Vec<f32> = rounded.map(|&x| self.treatment.dtype.round(x as f32)).collect();
        let numbers = quantize(&rounded, self.weight.k(), format).dequantize();
        numbers.into_par_iter().with_min_len(WORTH_SHARING).map(f64::from).collect()
    }
}

/// What a whole product of `m` rows and `n` columns, `k` numbers each, adds up to under random signs.
pub(crate) fn projected(
    [m, k, n]: [usize; 3],
    row: impl Fn(usize) -> Vec<f64> + Sync,
    col: impl Fn(usize) -> Vec<f64> + Sync,
) -> Projection {
    let sums = |lines: usize, line: &(dyn Fn(usize) -> Vec<f64> + Sync), of_others: &[f64]| -> Vec<f64> {
        let sum = |at: usize| line(at).iter().zip(of_others).map(|(x, other)| x * other).sum();
        (0..lines).into_par_iter().map(sum).collect()
    };
    let (of_rows, of_cols) = (signed_sum(m, k, &row), signed_sum(n, k, &col));
    Projection { rows: sums(m, &row, &of_cols), cols: sums(n, &col, &of_rows) }
}

/// The sum of rows of so many numbers under random signs.
fn signed_sum(rows: usize, cols: usize, row: impl Fn(usize) -> Vec<f64> + Sync) -> Vec<f64> {
    let firsts: Vec<usize> = (0..rows).step_by(TOGETHER).collect();
    let some_rows = |&first: &usize| {
        let mut sums = vec![0.0; cols];
        for at in first..rows.min(first + TOGETHER) {
            let sign = sign(at);
            sums.iter_mut().zip(row(at)).for_each(|(sum, value)| *sum += sign * value);
        }
        sums
    };
    let parts: Vec<Vec<f64>> = firsts.par_iter().map(some_rows).collect();
    (0..cols).map(|col| parts.iter().map(|part| part[col]).sum()).collect()
}

/// Eight partial sums: the compiler cannot reorder a floating-point sum on its own.
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
