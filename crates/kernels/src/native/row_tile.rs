//! Distribution of rows over threads.

use super::kernel::{LaunchGeometry, common_macros, vector_width};
use crate::Dtype;

/// Tile of rows over the threads of one or more warps per row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowTile {
    /// Elements per access.
    pub(super) width: usize,
    /// Threads per row: whole warps.
    pub(super) threads: usize,
    /// Rows per block.
    pub(super) rows: usize,
    /// Accesses per thread, whose values stay in registers; `None` if the row is too long.
    pub(super) vectors: Option<usize>,
}

impl RowTile {
    /// Limit from the 64 registers of a thread in a full block.
    const MAX_ELEMENTS_PER_THREAD: usize = 32;
    const WARP: usize = 32;
    const MAX_THREADS: usize = 1024;
    /// Threads of a block that several short rows share.
    const SMALL_BLOCK: usize = 128;

    /// Limit from registers with two rows and their column sums.
    const MAX_ELEMENTS_PER_THREAD_OF_PAIR: usize = 16;

    /// Elements per thread that keep several loads in flight.
    const ELEMENTS_PER_THREAD: usize = 16;

    /// Default tile for rows of `columns` elements.
    pub(super) fn for_row(kind: Dtype, columns: usize) -> Self {
        Self::new(columns, vector_width(kind), Self::ELEMENTS_PER_THREAD)
    }

    /// Tile for kernels in which a thread keeps its part of two rows.
    pub(super) fn for_row_pair(kind: Dtype, columns: usize) -> Self {
        let tile = Self::for_row(kind, columns);
        let fits = |pieces: &usize| pieces * tile.width <= Self::MAX_ELEMENTS_PER_THREAD_OF_PAIR;
        Self { vectors: tile.vectors.filter(fits), ..tile }
    }

    /// Tile for rows of `columns` elements: `widest` elements per access if the row length allows it, and about
    /// `elements_per_thread` elements per thread, up to the maximum number of threads.
    pub(super) fn new(columns: usize, widest: usize, elements_per_thread: usize) -> Self {
        let width = if columns.is_multiple_of(widest) { widest } else { 1 };
        let threads = columns.div_ceil(elements_per_thread).next_multiple_of(Self::WARP).min(Self::MAX_THREADS);
        let pieces = (columns / width).div_ceil(threads);
        Self {
            width,
            threads,
            rows: (Self::SMALL_BLOCK / threads).max(1),
            vectors: (pieces * width <= Self::MAX_ELEMENTS_PER_THREAD).then_some(pieces),
        }
    }

    /// Geometry with blocks for all `rows` rows, a number that was checked.
    pub(super) fn geometry(&self, rows: usize) -> LaunchGeometry {
        self.geometry_of_blocks(rows.div_ceil(self.rows))
    }

    /// Geometry with a number of blocks that is in range.
    pub(super) fn geometry_of_blocks(&self, blocks: usize) -> LaunchGeometry {
        LaunchGeometry { blocks: blocks as u32, threads: (self.threads as u32, self.rows as u32) }
    }

    /// True if the accesses of all threads cover a row without remainder.
    fn covers_exactly(&self, columns: usize) -> bool {
        self.vectors.is_some_and(|pieces| pieces * self.threads * self.width == columns)
    }

    /// Macro that states if every thread of every block has all its accesses.
    pub(super) fn full_tile_macro(&self, (rows, columns): (usize, usize)) -> String {
        format!("FULL_TILES={}", rows.is_multiple_of(self.rows) && self.covers_exactly(columns))
    }

    /// Macros of a kernel with this tile.
    pub(super) fn kernel_macros(&self, name: &str, kind: Dtype) -> Vec<String> {
        [common_macros(name, kind, self.width), self.macros()].concat()
    }

    /// Macros with the parameters of the tile.
    pub(super) fn macros(&self) -> Vec<String> {
        vec![
            format!("THREADS={}", self.threads),
            format!("ROWS={}", self.rows),
            format!("VECTORS_PER_THREAD={}", self.vectors.unwrap_or(0)),
        ]
    }

    /// Description; `otherwise` describes the treatment of rows that exceed the registers.
    pub(super) fn describe(&self, name: &str, otherwise: &str) -> String {
        let Self { width, threads, rows, vectors: pieces } = self;
        let storage = match pieces {
            Some(pieces) => format!("{pieces} accesses per thread in registers"),
            None => otherwise.to_string(),
        };
        format!("{name}: {threads} threads per row, {rows} rows per block, {width} elements per access, {storage}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_warps_cover_every_row_length() {
        for (widest, per_thread) in [(4, 16), (8, 16), (8, 32)] {
            for columns in (1..5000).chain([8191, 8192, 16384, 32767, 32768, 32769, 65536, 70001]) {
                let tile = RowTile::new(columns, widest, per_thread);
                assert_eq!(columns % tile.width, 0, "{columns} {tile:?}");
                assert_eq!(tile.threads % 32, 0, "{columns} {tile:?}");
                assert!(tile.threads * tile.rows <= 1024, "{columns} {tile:?}");
                if let Some(pieces) = tile.vectors {
                    assert!(tile.threads * pieces * tile.width >= columns, "{columns} {tile:?}");
                }
            }
        }
    }

    #[test]
    fn common_rows_stay_in_registers() {
        for (widest, per_thread) in [(4, 16), (8, 16), (8, 32)] {
            for columns in [768, 1024, 4096, 8192, 16384, 32768] {
                let tile = RowTile::new(columns, widest, per_thread);
                assert_eq!(tile.width, widest);
                assert!(tile.vectors.is_some(), "{columns} {tile:?}");
                assert!(tile.covers_exactly(columns) || columns == 768, "{columns} {tile:?}");
                assert!(!tile.covers_exactly(columns - 8), "{columns} {tile:?}");
            }
            assert_eq!(RowTile::new(65536, widest, per_thread).vectors, None);
        }
    }
}
