//! Expected magnitude of each element of an output, from the root mean squares (RMS) of its row and column.
//!
//! Small rows and columns are then judged as strictly as large ones.

use rayon::prelude::*;

/// Minimum number of values per row or column for an RMS of its own.
const MIN_VALUES: usize = 8;

/// Rows per partial sum; fixed, so that every run computes identical bits.
pub(super) const ROWS_PER_PARTIAL_SUM: usize = 16;

/// Elements of a row per partial sum; long rows are divided among threads.
const COLS_PER_PARTIAL_SUM: usize = 1 << 16;

/// Root mean squares of rows and columns.
pub(super) struct RowColumnRms {
    rows: Vec<f64>,
    /// Relative to the overall RMS; empty with too few rows, where each column counts as average.
    cols: Vec<f64>,
    all: f64,
}

impl RowColumnRms {
    /// Computes the RMS of a row-major matrix with `cols` columns.
    pub(super) fn new<T: Copy + Into<f64> + Sync>(values: &[T], cols: usize) -> Self {
        MeanSquares::new(values, cols).roots()
    }

    /// Computes upper confidence bounds of the RMS of rows and columns.
    pub(super) fn upper_bound<T: Copy + Into<f64> + Sync>(values: &[T], cols: usize) -> Self {
        MeanSquares::new(values, cols).upper_bound().roots()
    }

    /// Expected RMS of an element, from its row and column.
    pub(super) fn element(&self, row: usize, col: usize) -> f64 {
        self.rows[row] * self.cols.get(col).copied().unwrap_or(1.0)
    }

    /// Overall RMS.
    pub(super) fn overall(&self) -> f64 {
        self.all
    }
}

/// Mean squares of rows and columns.
struct MeanSquares {
    rows: Vec<f64>,
    /// Empty with too few rows.
    cols: Vec<f64>,
    /// Values per row.
    values_per_row: usize,
    all: f64,
}

impl MeanSquares {
    fn new<T: Copy + Into<f64> + Sync>(values: &[T], cols: usize) -> Self {
        let square = |value: &T| -> f64 { (*value).into() * (*value).into() };
        let rows = values.len() / cols.max(1);
        let of_row = |row: &[T]| -> f64 {
            let sums: Vec<f64> = row.par_chunks(COLS_PER_PARTIAL_SUM).map(|row| row.iter().map(square).sum()).collect();
            sums.iter().sum()
        };
        let of_rows: Vec<f64> = values.par_chunks(cols.max(1)).map(|row| of_row(row) / cols as f64).collect();
        let all = of_rows.iter().sum::<f64>() / rows.max(1) as f64;
        // With few columns, all rows count as average.
        let of_rows = if cols < MIN_VALUES { vec![all; rows] } else { of_rows };
        if rows < MIN_VALUES {
            return Self { rows: of_rows, cols: Vec::new(), values_per_row: cols, all };
        }
        let some_rows = values.par_chunks(cols.max(1) * ROWS_PER_PARTIAL_SUM).map(|values| {
            let mut sums = vec![0.0; cols];
            for row in values.chunks(cols) {
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += square(value));
            }
            sums
        });
        // Sequential, so that every run computes identical bits.
        let mut of_cols = vec![0.0; cols];
        for some in some_rows.collect::<Vec<Vec<f64>>>() {
            of_cols.iter_mut().zip(some).for_each(|(sum, some)| *sum += some / rows as f64);
        }
        Self { rows: of_rows, cols: of_cols, values_per_row: cols, all }
    }

    fn upper_bound(self) -> Self {
        let Self { rows, cols, values_per_row: in_row, all } = self;
        let in_col = rows.len();
        let known = |squares: Vec<f64>, count| {
            squares.into_iter().map(|square| bounded_mean_square(square, count, all)).collect()
        };
        Self { rows: known(rows, in_row), cols: known(cols, in_col), values_per_row: in_row, all }
    }

    fn roots(self) -> RowColumnRms {
        let Self { rows, cols, all, .. } = self;
        // If the overall mean square is zero, so are all values.
        let of_col = |square: f64| (square / all.max(f64::MIN_POSITIVE)).sqrt();
        RowColumnRms {
            rows: rows.into_iter().map(f64::sqrt).collect(),
            cols: cols.into_iter().map(of_col).collect(),
            all: all.sqrt(),
        }
    }
}

/// Upper bound of a mean square estimated from `count` values, shrunk toward the overall one if `count` is small.
///
/// Without shrinking, a few values that are nearly zero by chance would make the bound too strict.
fn bounded_mean_square(square: f64, count: usize, all: f64) -> f64 {
    if count < MIN_VALUES {
        return all;
    }
    let count = count as f64;
    let drawn = (MIN_VALUES * MIN_VALUES) as f64 / count;
    let square = (count * square + drawn * all) / (count + drawn);
    // Two standard deviations of a sum of squares.
    square * count / (count - 2.0 * (2.0 * count).sqrt()).max(count / MIN_VALUES as f64)
}
