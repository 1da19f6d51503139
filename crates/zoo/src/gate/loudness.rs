//! How loud each place of an output should be, so that a quiet row or column is judged as strictly as a loud one.

use rayon::prelude::*;

/// Rows or columns that are compared with fewer values than this are too few to be told apart by their loudness.
const FEW: usize = 8;

/// Rows that are added up together before the sums of all are: every run gives the same bits.
pub const TOGETHER: usize = 16;

/// Numbers of a row that are added up together: long rows are shared by threads.
const TOGETHER_IN_A_ROW: usize = 1 << 16;

/// The root mean squares of rows and columns.
pub struct Loudness {
    rows: Vec<f64>,
    /// In units of that of all; none where there are too few rows: each is as loud as all.
    cols: Vec<f64>,
    all: f64,
}

impl Loudness {
    /// Of values in rows of so many columns.
    pub fn of<T: Copy + Into<f64> + Sync>(values: &[T], cols: usize) -> Self {
        Squares::of(values, cols).roots()
    }

    /// The same where rows and columns may well be louder than was found.
    pub fn at_most<T: Copy + Into<f64> + Sync>(values: &[T], cols: usize) -> Self {
        Squares::of(values, cols).at_most().roots()
    }

    /// The root mean square that a value has by its row and its column.
    pub fn at(&self, row: usize, col: usize) -> f64 {
        self.rows[row] * self.cols.get(col).copied().unwrap_or(1.0)
    }

    /// The root mean square of all.
    pub fn of_all(&self) -> f64 {
        self.all
    }
}

/// The mean squares of rows and columns.
struct Squares {
    rows: Vec<f64>,
    /// None where there are too few rows.
    cols: Vec<f64>,
    /// How many numbers stand for a row.
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
        // Where few stand for many, they are no louder than all.
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
        // One after the other, so that every run gives the same bits.
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
        // Where all is zero, so is everything.
        let of_col = |square: f64| (square / all.max(f64::MIN_POSITIVE)).sqrt();
        Loudness {
            rows: rows.into_iter().map(f64::sqrt).collect(),
            cols: cols.into_iter().map(of_col).collect(),
            all: all.sqrt(),
        }
    }
}

/// The mean square of many values that so many stand for, whose own is `square`: as large as it may well be, and drawn to
/// that of all where few might all be nearly zero by chance.
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
