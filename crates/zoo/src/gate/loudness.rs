//! How loud each place of an output should be, so that a quiet row or column is judged as strictly as a loud one.

use super::projection::TOGETHER;
use rayon::prelude::*;

/// Rows or columns that are compared with fewer values than this are too few to be told apart by their loudness.
const FEW: usize = 8;

/// The mean squares of rows and columns.
pub struct Loudness {
    rows: Vec<f64>,
    cols: Vec<f64>,
    all: f64,
}

impl Loudness {
    /// Of values in rows of so many columns.
    pub fn of<T: Copy + Into<f64> + Sync>(values: &[T], cols: usize) -> Self {
        let square = |value: &T| -> f64 { (*value).into() * (*value).into() };
        let rows = values.len() / cols.max(1);
        let of_rows: Vec<f64> =
            values.par_chunks(cols.max(1)).map(|row| row.iter().map(square).sum::<f64>() / cols as f64).collect();
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
        let all = of_rows.iter().sum::<f64>() / rows.max(1) as f64;
        // Where few stand for many, they are no louder than all.
        let trusted = |squares: Vec<f64>, count: usize| if count < FEW { vec![all; squares.len()] } else { squares };
        Self { rows: trusted(of_rows, cols), cols: trusted(of_cols, rows), all }
    }

    /// The same where rows and columns may well be louder than was found.
    pub fn at_most(self) -> Self {
        let Self { rows, cols, all } = self;
        let (in_row, in_col) = (cols.len(), rows.len());
        let known = |squares: Vec<f64>, count| squares.into_iter().map(|square| known(square, count, all)).collect();
        Self { rows: known(rows, in_row), cols: known(cols, in_col), all }
    }

    /// The root mean square that a value has by its row and its column.
    pub fn at(&self, row: usize, col: usize) -> f64 {
        // Where all is zero, so is everything.
        (self.rows[row] * self.cols[col] / self.all.max(f64::MIN_POSITIVE)).sqrt()
    }

    /// The root mean square of all.
    pub fn of_all(&self) -> f64 {
        self.all.sqrt()
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
