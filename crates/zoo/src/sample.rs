//! Sampled part of an output.

use calorimeter_shapes::Shape;
use rayon::prelude::*;

/// Rows and columns of an output that are compared with the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputSample {
    /// Row indices, ascending.
    pub rows: Vec<usize>,
    /// Column indices, ascending.
    pub cols: Vec<usize>,
}

/// Maximum multiply-adds of a reference; larger outputs are sampled so that the gate stays cheap.
const MULTIPLY_ADD_BUDGET: u64 = 1 << 28;
/// Maximum number of sampled elements, however cheap. Elements outside the sample are compared between buffer sets.
const MAX_ELEMENTS: u64 = 1 << 22;
/// Minimum number of sampled rows and columns, if the output has them.
const MIN_SIDE: u64 = 32;
/// Minimum number of rows when rows are sampled whole.
const MIN_WHOLE_ROWS: u64 = 8;

impl OutputSample {
    /// Sample of a matmul: all elements if cheap, otherwise evenly spread rows and columns that include both edges.
    pub fn for_matmul(shape: Shape) -> Self {
        Self::new(shape.m(), shape.n(), shape.k())
    }

    /// Sample of all columns in some rows of a matmul.
    ///
    /// Rows rotate between buffer sets and columns do not, so an output that is right in a few rows and rotates
    /// everywhere is right.
    pub fn for_whole_rows(shape: Shape) -> Self {
        let (m, n) = (shape.m(), shape.n());
        let some = (MULTIPLY_ADD_BUDGET / (n * shape.k())).max(MIN_WHOLE_ROWS).min(m);
        Self { rows: spread_indices(m, some), cols: (0..n as usize).collect() }
    }

    /// Sample of an output whose elements cost `depth` multiply-adds each.
    ///
    /// Rows are sampled whole where elements are cheap, because most references read a whole row for any of its
    /// elements.
    pub fn new(rows: u64, cols: u64, depth: u64) -> Self {
        let elements = (MULTIPLY_ADD_BUDGET / depth.max(1)).clamp(MIN_SIDE * MIN_SIDE, MAX_ELEMENTS);
        if rows * cols <= elements {
            return Self { rows: spread_indices(rows, rows), cols: spread_indices(cols, cols) };
        }
        let (side, whole) = ((elements as f64).sqrt() as u64, elements / cols);
        let are_whole = elements == MAX_ELEMENTS && whole >= MIN_SIDE;
        let some_rows = rows.min(if are_whole { whole } else { side.max(whole) });
        let some_cols = cols.min(elements / some_rows);
        Self { rows: spread_indices(rows, some_rows), cols: spread_indices(cols, some_cols) }
    }

    /// Depth to pass to [`Self::new`] if a sampled row costs `cost` multiply-adds for any number of sampled columns.
    pub fn depth_for_row_cost(cols: u64, cost: u64) -> u64 {
        let narrow = cost / cols.max(1);
        let wide = u128::from(cost).pow(2) / u128::from(MULTIPLY_ADD_BUDGET);
        narrow.max(u64::try_from(wide).unwrap_or(u64::MAX)).max(1)
    }

    /// True if all indices are within an output of this size.
    pub fn is_within(&self, [rows, cols]: [usize; 2]) -> bool {
        let beyond = |indices: &[usize]| indices.last().map_or(0, |last| last + 1);
        beyond(&self.rows) <= rows && beyond(&self.cols) <= cols
    }

    /// Number of sampled elements.
    pub fn len(&self) -> usize {
        self.rows.len() * self.cols.len()
    }

    /// True if nothing is sampled.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Computes each sampled row by `of`, which returns one value per sampled column.
    pub fn map_rows(&self, of: impl Fn(usize) -> Vec<f64> + Sync) -> Vec<f64> {
        let mut values = vec![0.0; self.len()];
        let rows = values.par_chunks_mut(self.cols.len().max(1)).zip(&self.rows);
        rows.for_each(|(values, &row)| values.copy_from_slice(&of(row)));
        values
    }

    /// Computes each sampled row by `of`, which returns the whole row; keeps the sampled columns.
    pub fn map_whole_rows(&self, of: impl Fn(usize) -> Vec<f64> + Sync) -> Vec<f64> {
        self.map_rows(|row| {
            let whole = of(row);
            self.cols.iter().map(|&col| whole[col]).collect()
        })
    }

    /// Computes each sampled element by `of`; parallel over rows and parts of long rows.
    pub fn map_elements(&self, of: impl Fn(usize, usize) -> f64 + Sync) -> Vec<f64> {
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

    /// Row and column of the `i`-th sampled element.
    pub fn position(&self, i: usize) -> (usize, usize) {
        (self.rows[i / self.cols.len()], self.cols[i % self.cols.len()])
    }
}

/// Returns `count` ascending indices below `size` that include both ends. Jitter avoids the period of a kernel's tiles.
pub(crate) fn spread_indices(size: u64, count: u64) -> Vec<usize> {
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
    fn large_outputs_are_sampled_within_budget() {
        let whole = OutputSample::for_matmul(Shape::new(64, 64, 64).unwrap());
        assert_eq!(whole.len(), 64 * 64);
        for (m, k, n) in [(16384, 16384, 16384), (1, 4096, 128_000), (128_000, 8192, 1024), (32768, 256, 1)] {
            let sample = OutputSample::for_matmul(Shape::new(m, k, n).unwrap());
            assert!(
                sample.len() as u64 * k <= MULTIPLY_ADD_BUDGET.max(MIN_SIDE * MIN_SIDE * k),
                "{m} {k} {n}: {}",
                sample.len()
            );
            assert!(sample.len() >= 1000 || sample.len() as u64 == m * n);
            assert_eq!((sample.rows[0], *sample.rows.last().unwrap()), (0, m as usize - 1));
            assert_eq!((sample.cols[0], *sample.cols.last().unwrap()), (0, n as usize - 1));
            assert!(sample.rows.is_sorted() && sample.cols.is_sorted());
        }
    }

    #[test]
    fn cheap_rows_are_sampled_whole() {
        for (rows, cols, sampled) in
            [(8192, 16384, [256, 16384]), (1 << 20, 64, [1 << 16, 64]), (64, 1 << 20, [64, 1 << 16])]
        {
            let sample = OutputSample::new(rows, cols, 4);
            // Jittered indices may coincide.
            assert!(sample.rows.len() <= sampled[0] && sample.rows.len() * 10 > sampled[0] * 9, "{rows} {cols}");
            assert_eq!(
                (*sample.rows.last().unwrap(), *sample.cols.last().unwrap()),
                (rows as usize - 1, cols as usize - 1)
            );
            assert_eq!(sample.cols.len() == cols as usize, sampled[1] == cols as usize, "{rows} {cols}");
        }
    }

    #[test]
    fn expensive_rows_are_sampled_within_budget() {
        for (rows, cols, cost) in
            [(32768, 32768, 32768 * 64), (65536, 64, 2 * 65536 * 64), (7, 5, 3), (1 << 20, 64, 64)]
        {
            let sample = OutputSample::new(rows, cols, OutputSample::depth_for_row_cost(cols, cost));
            assert!(
                sample.rows.len() as u64 * cost <= MULTIPLY_ADD_BUDGET.max(MIN_SIDE * cost),
                "{rows} {cols} {cost}"
            );
        }
    }
}
