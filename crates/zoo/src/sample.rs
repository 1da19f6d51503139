//! The part of an output that is compared with its reference.

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
/// So are more numbers than this, however cheap each is: what is not sampled is compared between buffer sets.
const MOST: u64 = 1 << 22;
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

    /// Rows and columns of an output of which each element costs so many multiply-adds. Rows are whole where numbers are cheap:
    /// most of what makes one of a row reads all of it.
    pub fn of(rows: u64, cols: u64, depth: u64) -> Self {
        let elements = (BUDGET / depth.max(1)).clamp(LEAST * LEAST, MOST);
        if rows * cols <= elements {
            return Self { rows: spread(rows, rows), cols: spread(cols, cols) };
        }
        let (side, whole) = ((elements as f64).sqrt() as u64, elements / cols);
        let are_whole = elements == MOST && whole >= LEAST;
        let some_rows = rows.min(if are_whole { whole } else { side.max(whole) });
        let some_cols = cols.min(elements / some_rows);
        Self { rows: spread(rows, some_rows), cols: spread(cols, some_cols) }
    }

    /// The depth to give where a sampled row costs so many multiply-adds, however few of its columns are sampled.
    pub fn depth_of_rows(cols: u64, cost: u64) -> u64 {
        let narrow = cost / cols.max(1);
        let wide = u128::from(cost).pow(2) / u128::from(BUDGET);
        narrow.max(u64::try_from(wide).unwrap_or(u64::MAX)).max(1)
    }

    /// Whether an output of so many rows and columns has all of it.
    pub fn is_within(&self, [rows, cols]: [usize; 2]) -> bool {
        let beyond = |indices: &[usize]| indices.last().map_or(0, |last| last + 1);
        beyond(&self.rows) <= rows && beyond(&self.cols) <= cols
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
        let mut values = vec![0.0; self.len()];
        let rows = values.par_chunks_mut(self.cols.len().max(1)).zip(&self.rows);
        rows.for_each(|(values, &row)| values.copy_from_slice(&of(row)));
        values
    }

    /// The sampled columns of each sampled row, which `of` computes whole.
    pub fn by_whole_rows(&self, of: impl Fn(usize) -> Vec<f64> + Sync) -> Vec<f64> {
        self.by_rows(|row| {
            let whole = of(row);
            self.cols.iter().map(|&col| whole[col]).collect()
        })
    }

    /// What `of` says of each sampled row and column; threads share rows, and parts of long ones.
    pub fn by_elements(&self, of: impl Fn(usize, usize) -> f64 + Sync) -> Vec<f64> {
        const PIECE: usize = 1 << 16;
        let mut values = vec![0.0; self.len()];
        let rows = values.par_chunks_mut(self.cols.len().max(1)).zip(&self.rows);
        rows.for_each(|(values, &row)| {
            let pieces = values.par_chunks_mut(PIECE).zip(self.cols.par_chunks(PIECE));
            let each = |(value, &col): (&mut f64, &usize)| *value = of(row, col);
            pieces.for_each(|(values, cols)| values.iter_mut().zip(cols).for_each(each));
        });
        values
    }

    /// The row and column of the sample's `i`-th element.
    pub fn position(&self, i: usize) -> (usize, usize) {
        (self.rows[i / self.cols.len()], self.cols[i % self.cols.len()])
    }
}

/// `count` indices below `size`, the first and last among them, jittered so that no period of a kernel's tiles hides.
pub(crate) fn spread(size: u64, count: u64) -> Vec<usize> {
    if count >= size {
        return (0..size as usize).into_par_iter().collect();
    }
    let step = (size - 1) as f64 / (count - 1).max(1) as f64;
    let jitter = |i: u64| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64 / f64::from(1 << 24);
    let at = |i: u64| match i {
        0 => 0,
        i if i == count - 1 => size as usize - 1,
        i => ((i as f64 + jitter(i) - 0.5) * step).max(0.0) as usize,
    };
    let mut indices: Vec<usize> = (0..count).into_par_iter().map(at).collect();
    indices.dedup();
    indices
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
    fn rows_of_cheap_numbers_are_sampled_whole() {
        for (rows, cols, sampled) in
            [(8192, 16384, [256, 16384]), (1 << 20, 64, [1 << 16, 64]), (64, 1 << 20, [64, 1 << 16])]
        {
            let sample = Sample::of(rows, cols, 4);
            // Jittered indices may meet.
            assert!(sample.rows.len() <= sampled[0] && sample.rows.len() * 10 > sampled[0] * 9, "{rows} {cols}");
            assert_eq!(
                (*sample.rows.last().unwrap(), *sample.cols.last().unwrap()),
                (rows as usize - 1, cols as usize - 1)
            );
            assert_eq!(sample.cols.len() == cols as usize, sampled[1] == cols as usize, "{rows} {cols}");
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
