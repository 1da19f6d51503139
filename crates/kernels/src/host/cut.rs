//! How an output is cut into parts that threads work on, whatever is computed.

use rayon::{current_num_threads, in_place_scope};
use std::sync::{Mutex, PoisonError};

/// Columns that tiles are multiples of, and weights are packed by.
pub const PANEL: usize = 32;

/// Parts for each thread, so that one that is held up delays the others by a quarter at most.
const PARTS: usize = 4;

/// The size of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Rows of it.
    pub rows: usize,
    /// Columns of it, a multiple of [`PANEL`].
    pub columns: usize,
}

impl Cut {
    /// Parts of an output of `m` rows by `n`: first columns are divided, then rows, down to so many.
    pub fn new(m: usize, n: usize, least_rows: usize) -> Self {
        let (wanted, panels) = (PARTS * current_num_threads(), n.div_ceil(PANEL).max(1));
        let columns = panels.div_ceil(wanted.min(panels)) * PANEL;
        let rows = m.div_ceil(wanted.div_ceil(n.div_ceil(columns).max(1)));
        Self { rows: rows.max(least_rows).min(m.max(1)), columns }
    }

    /// The parts of an output whose rows have `n` numbers.
    pub fn parts<'a>(&self, y: &'a mut [f32], n: usize) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        for (block, rows) in y.chunks_mut(n * self.rows).enumerate() {
            let mut rows: Vec<_> = rows.chunks_mut(n).map(|row| row.chunks_mut(self.columns)).collect();
            for column in (0..n).step_by(self.columns) {
                let outputs = rows.iter_mut().filter_map(Iterator::next).collect();
                parts.push(Part { row: block * self.rows, column, outputs });
            }
        }
        parts
    }
}

/// Some columns of some rows of an output.
pub struct Part<'a> {
    /// Its first row.
    pub row: usize,
    /// Its first column.
    pub column: usize,
    /// Its columns, row by row.
    pub outputs: Vec<&'a mut [f32]>,
}

/// Works on every part, on as many threads as the pool has. The caller is one of them: it begins at once, while others wake, and
/// who is free takes the next part.
pub fn share_out<T: Send>(parts: Vec<T>, work: impl Fn(T) + Sync) {
    let others = parts.len().min(current_num_threads()).saturating_sub(1);
    if others == 0 {
        return parts.into_iter().for_each(work);
    }
    let parts = Mutex::new(parts.into_iter());
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    let take = || std::iter::from_fn(next).for_each(&work);
    in_place_scope(|scope| {
        (0..others).for_each(|_| scope.spawn(|_| take()));
        take();
    });
}

/// The rows of the next tile, of so many that are left, where registers hold so many.
#[inline(always)]
pub fn rows_of_tile(left: usize, most: usize) -> usize {
    for rows in [12, 6, 4, 2] {
        if rows <= left && rows <= most {
            return rows;
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_every_output_once() {
        for (m, n, least) in [(1, 1, 1), (1, 4096, 1), (1024, 4096, 96), (129, 127, 96), (3, 1000, 1), (1000, 1, 2)] {
            let cut = Cut::new(m, n, least);
            let mut y = vec![0.0; m * n];
            for Part { row, column, mut outputs } in cut.parts(&mut y, n) {
                for (at, output) in outputs.iter_mut().enumerate() {
                    for (i, y) in output.iter_mut().enumerate() {
                        *y += ((row + at) * n + column + i + 1) as f32;
                    }
                }
            }
            assert!(y.iter().enumerate().all(|(i, &y)| y == (i + 1) as f32), "{m} {n} {cut:?}");
        }
    }
}
