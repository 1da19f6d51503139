//! How loud each place of an output should be, so that a quiet row or column is judged as strictly as a loud one.

use crate::Sample;

/// Rows or columns that are compared with fewer values than this are too few to be told apart by their loudness.
const FEW: usize = 8;

/// The root mean square that each sampled value has by its row and its column.
pub fn of(reference: &[f64], sample: &Sample) -> Vec<f64> {
    let (rows, cols) = (sample.rows.len(), sample.cols.len());
    let all = mean(reference.iter().map(|value| value * value));
    if all == 0.0 {
        return vec![0.0; reference.len()];
    }
    let row = |row: usize| mean(reference[row * cols..][..cols].iter().map(|value| value * value));
    let col = |col: usize| mean((0..rows).map(|row| reference[row * cols + col].powi(2)));
    let of_rows: Vec<f64> = (0..rows).map(|at| known(row(at), cols, all)).collect();
    let of_cols: Vec<f64> = (0..cols).map(|at| known(col(at), rows, all)).collect();
    of_rows.iter().flat_map(|row| of_cols.iter().map(move |col| (row * col / all).sqrt())).collect()
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

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}
