//! Expected magnitude of each element of an output, from the root mean squares (RMS) of its row and column.
//!
//! Small rows and columns are then judged as strictly as large ones.

use rayon::prelude::*;

/// Minimum number of values per row or column for an RMS of its own.
const FEW: usize = 8;

/// Rows per partial sum; fixed, so that every run computes identical bits.
pub const TOGETHER: usize = 16;

/// Elements of a row per partial sum; long rows are divided among threads.
const TOGETHER_IN_A_ROW: usize = 1 << 16;

/// Root mean squares of rows and columns.
pub struct Loudness {
    rows: Vec<f64>,
    /// Relative to the overall RMS; empty with too few rows, where each column counts as average.
    cols: Vec<f64>,
    all: f64,
}

impl Loudness {
    /// Computes the RMS of a row-major matrix with `cols` columns.
    pub fn of<T: Copy + Into<f64> + Sync>(values: &[T], cols: usize) -> Self {
        Squares::of(values, cols).roots()
    }

    /// Computes upper confidence bounds of the RMS of rows and columns.
    pub fn at_most<T: Copy + Into<f64> + Sync>(values: &[T], cols: usize) -> Self {
        Squares::of(values, cols).at_most().roots()
    }

    /// Expected RMS of an element, from its row and column.
    pub fn at(&self, row: usize, col: usize) -> f64 {
        self.rows[row] * self.cols.get(col).copied().unwrap_or(1.0)
    }

    /// Overall RMS.
    pub fn of_all(&self) -> f64 {
        self.all
    }
}

/// Mean squares of rows and columns.
struct Squares {
    rows: Vec<f64>,
    /// Empty with too few rows.
    cols: Vec<f64>,
    /// Values per row.
    in_row: usize,
    all: f64,
}

impl Squares {
    fn of<T: Copy + Into<f64> + Sync>(values: &[T], cols: usize) -> Self {
        let square = |value: &T| -> f64 { (*value).into() * (*value).into() };
        let rows = values.len() / cols.max(1);
        let of_row = |row: &[T]| -> f64 {
            let sums: Vec<f64> = row.par_chunks(TOGETHER_IN_A_ROW).map(|row| row.iter().map(square).sum()).collect();
            sums.iter().sum()
        };
        let of_rows: Vec<f64> = values.par_chunks(cols.max(1)).map(|row| of_row(row) / cols as f64).collect();
        let all = of_rows.iter().sum::<f64>() / rows.max(1) as f64;
        // With few columns, all rows count as average.
        let of_rows = if cols < FEW { vec![all; rows] } else { of_rows };
        if rows < FEW {
            return Self { rows: of_rows, cols: Vec::new(), in_row: cols, all };
        }
        let some_rows = values.par_chunks(cols.max(1) * TOGETHER).map(|values| {
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
        Self { rows: of_rows, cols: of_cols, in_row: cols, all }
    }

    fn at_most(self) -> Self {
        let Self { rows, cols, in_row, all } = self;
        let in_col = rows.len();
        let known = |squares: Vec<f64>, count| squares.into_iter().map(|square| known(square, count, all)).collect();
        Self { rows: known(rows, in_row), cols: known(cols, in_col), in_row, all }
    }

    fn roots(self) -> Loudness {
        let Self { rows, cols, all, .. } = self;
        // If the overall mean square is zero, so are all values.
        let of_col = |square: f64| (square / all.max(f64::MIN_POSITIVE)).sqrt();
        Loudness {
            rows: rows.into_iter().map(f64::sqrt).collect(),
            cols: cols.into_iter().map(of_col).collect(),
            all: all.sqrt(),
        }
    }
}

/// Upper bound of a mean square estimated from `count` values, shrunk toward the overall one if `count` is small.
///
/// Without shrinking, a few values that are nearly zero by chance would make the bound too strict.
fn known(square: f64, count: usize, all: f64) -> f64 {
    if count < FEW {
        return all;
    }
    let count = count as f64;
    let drawn = (FEW * FEW) as f64 / count;
    let square = (count * square + drawn * all) / (count + drawn);
    // Two standard deviations of a sum of squares.
    square * count / (count - 2.0 * (2.0 * count).sqrt()).max(count / FEW as f64)
}
