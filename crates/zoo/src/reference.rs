//! Outputs in double precision, of the whole output or of a sample of it.

use crate::Matrix;
use crate::gate::projection::{self, Projection};
use calorimeter_recipes::quantise::quantise;
use calorimeter_recipes::{FloatType, RecipeError, Treatment, Weight};
use calorimeter_shapes::Shape;
use rayon::prelude::*;

/// The rows and columns of an output that are compared with the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Row indices, ascending.
    pub rows: Vec<usize>,
    /// Column indices, ascending.
    pub cols: Vec<usize>,
}

/// More multiply-adds than this are sampled: the gate must stay cheap beside what it guards.
const BUDGET: u64 = 1 << 28;
/// Rows and columns that a sample has at least, where the output has them.
const LEAST: u64 = 32;
/// Whole rows that a sample of such has at least.
const FEW_ROWS: u64 = 8;

impl Sample {
    /// Rows and columns of a product, all of them when that is cheap, else evenly spread with both edges.
    pub fn of_product(shape: Shape) -> Self {
        Self::of(shape.m(), shape.n(), shape.k())
    }

    /// All columns of some rows of a product. Between buffer sets rows change places and columns do not, so that what is right
    /// in a few rows, and moves with them everywhere, is right.
    pub fn of_whole_rows(shape: Shape) -> Self {
        let (m, n) = (shape.m(), shape.n());
        let some = (BUDGET / (n * shape.k())).max(FEW_ROWS).min(m);
        Self { rows: spread(m, some), cols: (0..n as usize).collect() }
    }

    /// Rows and columns of an output of which each element costs so many multiply-adds.
    pub fn of(rows: u64, cols: u64, depth: u64) -> Self {
        let elements = (BUDGET / depth.max(1)).max(LEAST * LEAST);
        if rows * cols <= elements {
            return Self { rows: (0..rows as usize).collect(), cols: (0..cols as usize).collect() };
        }
        let side = (elements as f64).sqrt() as u64;
        let some_rows = rows.min(side.max(elements / cols));
        let some_cols = cols.min(elements / some_rows);
        Self { rows: spread(rows, some_rows), cols: spread(cols, some_cols) }
    }

    /// The depth to give where a sampled row costs so many multiply-adds, however few of its columns are sampled.
    pub fn depth_of_rows(cols: u64, cost: u64) -> u64 {
        let narrow = cost / cols.max(1);
        let wide = u128::from(cost).pow(2) / u128::from(BUDGET);
        narrow.max(u64::try_from(wide).unwrap_or(u64::MAX)).max(1)
    }

    /// Compared elements.
    pub fn len(&self) -> usize {
        self.rows.len() * self.cols.len()
    }

    /// Whether nothing is compared.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What `of` says of each sampled row: one value for each sampled column.
    pub fn by_rows(&self, of: impl Fn(usize) -> Vec<f64> + Sync) -> Vec<f64> {
        self.rows.par_iter().flat_map_iter(|&row| of(row)).collect()
    }

    /// The sampled columns of each sampled row, which `of` computes whole.
    pub fn by_whole_rows(&self, of: impl Fn(usize) -> Vec<f64> + Sync) -> Vec<f64> {
        self.by_rows(|row| {
            let whole = of(row);
            self.cols.iter().map(|&col| whole[col]).collect()
        })
    }

    /// What `of` says of each sampled row and column.
    pub fn by_elements(&self, of: impl Fn(usize, usize) -> f64 + Sync) -> Vec<f64> {
        self.by_rows(|row| self.cols.iter().map(|&col| of(row, col)).collect())
    }

    /// The row and column of the sample's `i`-th element.
    pub fn position(&self, i: usize) -> (usize, usize) {
        (self.rows[i / self.cols.len()], self.cols[i % self.cols.len()])
    }
}

/// `count` indices below `size`, the first and last among them, jittered so that no period of a kernel's tiles hides.
fn spread(size: u64, count: u64) -> Vec<usize> {
    if count >= size {
        return (0..size as usize).collect();
    }
    let step = (size - 1) as f64 / (count - 1).max(1) as f64;
    let jitter = |i: u64| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64 / f64::from(1 << 24);
    let at = |i: u64| match i {
        0 => 0,
        i if i == count - 1 => size as usize - 1,
        i => ((i as f64 + jitter(i) - 0.5) * step).max(0.0) as usize,
    };
    let mut indices: Vec<usize> = (0..count).map(at).collect();
    indices.dedup();
    indices
}

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
            let all = (0..rows).into_par_iter().flat_map_iter(&row).collect::<Vec<f64>>();
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
        let whole = self.treatment.input(rows).is_some_and(|format| format.looks_at_the_whole_tensor());
        let all = whole.then(|| self.operand(&input.values.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), rows));
        let row = |row: usize| match &all {
            Some(all) => all[row * k..][..k].to_vec(),
            None => self.operand(&input.exact_row(row), rows),
        };
        projected([rows, k, n], row, |col| self.weight.row(col).iter().map(|&w| f64::from(w)).collect())
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

    /// What an input stands for once it is quantised: some of `rows` rows that the layer is given together.
    fn operand(&self, input: &[f64], rows: usize) -> Vec<f64> {
        let Some(format) = self.treatment.input(rows) else { return input.to_vec() };
        let rounded: Vec<f32> = input.iter().map(|&x| self.treatment.dtype.round(x as f32)).collect();
        quantise(&rounded, self.weight.k(), format).dequantise().into_iter().map(f64::from).collect()
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
    let firsts: Vec<usize> = (0..rows).step_by(projection::TOGETHER).collect();
    let some_rows = |&first: &usize| {
        let mut sums = vec![0.0; cols];
        for at in first..rows.min(first + projection::TOGETHER) {
            let sign = projection::sign(at);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_outputs_are_compared_whole_and_large_ones_within_budget() {
        let whole = Sample::of_product(Shape::new(64, 64, 64).unwrap());
        assert_eq!(whole.len(), 64 * 64);
        for (m, k, n) in [(16384, 16384, 16384), (1, 4096, 128_000), (128_000, 8192, 1024), (32768, 256, 1)] {
            let sample = Sample::of_product(Shape::new(m, k, n).unwrap());
            assert!(sample.len() as u64 * k <= BUDGET.max(LEAST * LEAST * k), "{m} {k} {n}: {}", sample.len());
            assert!(sample.len() >= 1000 || sample.len() as u64 == m * n);
            assert_eq!((sample.rows[0], *sample.rows.last().unwrap()), (0, m as usize - 1));
            assert_eq!((sample.cols[0], *sample.cols.last().unwrap()), (0, n as usize - 1));
            assert!(sample.rows.is_sorted() && sample.cols.is_sorted());
        }
    }
    #[test]
    fn rows_that_cost_much_are_sampled_within_budget() {
        for (rows, cols, cost) in
            [(32768, 32768, 32768 * 64), (65536, 64, 2 * 65536 * 64), (7, 5, 3), (1 << 20, 64, 64)]
        {
            let sample = Sample::of(rows, cols, Sample::depth_of_rows(cols, cost));
            assert!(sample.rows.len() as u64 * cost <= BUDGET.max(LEAST * cost), "{rows} {cols} {cost}");
        }
    }
}
