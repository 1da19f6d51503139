//! How a row that is held in registers is dealt to threads.

use super::kernel::widest;
use crate::Dtype;

/// The elements of a row, cut up for the threads of one or more warps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowCut {
    /// Elements in one access.
    pub(super) width: usize,
    /// Threads for one row: whole warps.
    pub(super) threads: usize,
    /// Rows in one block.
    pub(super) rows: usize,
    /// Accesses per thread, whose values stay in registers; `None` if the row is too long for that.
    pub(super) pieces: Option<usize>,
}

impl RowCut {
    /// More would not fit the 64 registers that a thread of a full block has.
    const MOST_ELEMENTS_PER_THREAD: usize = 32;
    const WARP: usize = 32;
    const MOST_THREADS: usize = 1024;
    /// Short rows share a block of this size.
    const SMALL_BLOCK: usize = 128;

    /// With two rows, and sums of their columns, more would not fit them.
    const MOST_ELEMENTS_PER_THREAD_OF_PAIR: usize = 16;

    /// Enough elements per thread to keep several loads in flight.
    const ELEMENTS_PER_THREAD: usize = 16;

    /// Cuts rows of so many numbers of this type, as most kernels have them.
    pub(super) fn of_row(kind: Dtype, columns: usize) -> Self {
        Self::new(columns, widest(kind), Self::ELEMENTS_PER_THREAD)
    }

    /// The same where a thread keeps its part of two rows.
    pub(super) fn of_pair(kind: Dtype, columns: usize) -> Self {
        let cut = Self::of_row(kind, columns);
        let fits = |pieces: &usize| pieces * cut.width <= Self::MOST_ELEMENTS_PER_THREAD_OF_PAIR;
        Self { pieces: cut.pieces.filter(fits), ..cut }
    }

    /// Cuts rows of so many columns: `widest` elements in an access where all rows allow it, and so many for each thread
    /// as long as there are threads for it.
    pub(super) fn new(columns: usize, widest: usize, elements_per_thread: usize) -> Self {
        let width = if columns.is_multiple_of(widest) { widest } else { 1 };
        let threads = columns.div_ceil(elements_per_thread).next_multiple_of(Self::WARP).min(Self::MOST_THREADS);
        let pieces = (columns / width).div_ceil(threads);
        Self {
            width,
            threads,
            rows: (Self::SMALL_BLOCK / threads).max(1),
            pieces: (pieces * width <= Self::MOST_ELEMENTS_PER_THREAD).then_some(pieces),
        }
    }

    /// Whether the threads of a row have all of its accesses, and no more.
    fn covers_exactly(&self, columns: usize) -> bool {
        self.pieces.is_some_and(|pieces| pieces * self.threads * self.width == columns)
    }

    /// Tells a source that no thread of any block is without its accesses, if that is so.
    pub(super) fn whole(&self, (rows, columns): (usize, usize)) -> String {
        format!("WHOLE={}", rows.is_multiple_of(self.rows) && self.covers_exactly(columns))
    }

    /// Its numbers as macros of a source.
    pub(super) fn macros(&self) -> Vec<String> {
        vec![
            format!("THREADS={}", self.threads),
            format!("ROWS={}", self.rows),
            format!("PIECES={}", self.pieces.unwrap_or(0)),
        ]
    }

    /// In words; `unkept` is what happens to rows too long for the registers.
    pub(super) fn describe(&self, name: &str, unkept: &str) -> String {
        let Self { width, threads, rows, pieces } = self;
        let kept = match pieces {
            Some(pieces) => format!("{pieces} accesses per thread kept in registers"),
            None => unkept.to_string(),
        };
        format!("{name}: {threads} threads per row, {rows} rows per block, {width} elements per access, {kept}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_length_is_covered_by_whole_accesses_of_whole_warps() {
        for (widest, per_thread) in [(4, 16), (8, 16), (8, 32)] {
            for columns in (1..5000).chain([8191, 8192, 16384, 32767, 32768, 32769, 65536, 70001]) {
                let cut = RowCut::new(columns, widest, per_thread);
                assert_eq!(columns % cut.width, 0, "{columns} {cut:?}");
                assert_eq!(cut.threads % 32, 0, "{columns} {cut:?}");
                assert!(cut.threads * cut.rows <= 1024, "{columns} {cut:?}");
                if let Some(pieces) = cut.pieces {
                    assert!(cut.threads * pieces * cut.width >= columns, "{columns} {cut:?}");
                }
            }
        }
    }

    #[test]
    fn usual_rows_are_read_once_in_wide_accesses() {
        for (widest, per_thread) in [(4, 16), (8, 16), (8, 32)] {
            for columns in [768, 1024, 4096, 8192, 16384, 32768] {
                let cut = RowCut::new(columns, widest, per_thread);
                assert_eq!(cut.width, widest);
                assert!(cut.pieces.is_some(), "{columns} {cut:?}");
                assert!(cut.covers_exactly(columns) || columns == 768, "{columns} {cut:?}");
                assert!(!cut.covers_exactly(columns - 8), "{columns} {cut:?}");
            }
            assert_eq!(RowCut::new(65536, widest, per_thread).pieces, None);
        }
    }
}
