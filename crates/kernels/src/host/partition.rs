//! Partition of an output among threads.

use rayon::{current_num_threads, in_place_scope};
use std::sync::{Mutex, PoisonError};

/// Columns of a packed weight panel; tiles are multiples of it.
pub(super) const PANEL: usize = 32;

/// Parts per thread, so that one delayed thread delays the others by at most a quarter.
const PARTS_PER_THREAD: usize = 4;

/// Size of the parts of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutputPartition {
    /// Rows per part.
    pub rows: usize,
    /// Columns per part, a multiple of [`PANEL`].
    pub columns: usize,
}

impl OutputPartition {
    /// Partitions an output of `m` rows and `n` columns: columns are divided first, then rows down to `min_rows`.
    pub(super) fn new(m: usize, n: usize, min_rows: usize) -> Self {
        let (target_parts, panels) = (PARTS_PER_THREAD * current_num_threads(), n.div_ceil(PANEL).max(1));
        let columns = panels.div_ceil(target_parts.min(panels)) * PANEL;
        let rows = m.div_ceil(target_parts.div_ceil(n.div_ceil(columns).max(1)));
        Self { rows: rows.max(min_rows).min(m.max(1)), columns }
    }

    /// Returns the parts of an output whose rows have `n` elements.
    pub(super) fn parts<'a>(&self, y: &'a mut [f32], n: usize) -> Vec<OutputPart<'a>> {
        let mut parts = Vec::new();
        for (block, rows) in y.chunks_mut(n * self.rows).enumerate() {
            let mut rows: Vec<_> = rows.chunks_mut(n).map(|row| row.chunks_mut(self.columns)).collect();
            for column in (0..n).step_by(self.columns) {
                let outputs = rows.iter_mut().filter_map(Iterator::next).collect();
                parts.push(OutputPart { row: block * self.rows, column, outputs });
            }
        }
        parts
    }
}

/// Rectangular part of an output.
pub(super) struct OutputPart<'a> {
    /// First row.
    pub row: usize,
    /// First column.
    pub column: usize,
    /// Columns of each row.
    pub outputs: Vec<&'a mut [f32]>,
}

/// Processes all parts on the threads of the pool. The calling thread starts immediately while others wake up; each
/// idle thread takes the next part.
pub fn run_parallel<T: Send>(parts: Vec<T>, work: impl Fn(T) + Sync) {
    let helpers = parts.len().min(current_num_threads()).saturating_sub(1);
    if helpers == 0 {
        return parts.into_iter().for_each(work);
    }
    let parts = Mutex::new(parts.into_iter());
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    let take = || std::iter::from_fn(next).for_each(&work);
    in_place_scope(|scope| {
        (0..helpers).for_each(|_| scope.spawn(|_| take()));
        take();
    });
}

/// Rows of the next tile, given the remaining rows and the maximum that registers hold.
#[inline(always)]
pub(super) fn tile_rows(remaining: usize, max_rows: usize) -> usize {
    for rows in [12, 6, 4, 2] {
        if rows <= remaining && rows <= max_rows {
            return rows;
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_each_output_once() {
        for (m, n, least_rows) in
            [(1, 1, 1), (1, 4096, 1), (1024, 4096, 96), (129, 127, 96), (3, 1000, 1), (1000, 1, 2)]
        {
            let partition = OutputPartition::new(m, n, least_rows);
            let mut y = vec![0.0; m * n];
            for OutputPart { row, column, mut outputs } in partition.parts(&mut y, n) {
                for (at, output) in outputs.iter_mut().enumerate() {
                    for (i, y) in output.iter_mut().enumerate() {
                        *y += ((row + at) * n + column + i + 1) as f32;
                    }
                }
            }
            assert!(y.iter().enumerate().all(|(i, &y)| y == (i + 1) as f32), "{m} {n} {partition:?}");
        }
    }
}
