//! Layer normalisation of rows.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, checked_size, common_macros, widest},
    nvrtc::Source,
};
use crate::FloatKind;

/// A plan of y = (x - mean) / sqrt(variance + 1e-5) for each row of x, without weights.
///
/// The statistics are taken in f32, the mean first and the variance around it, so that rows with a large mean lose
/// nothing.
#[derive(Debug)]
pub struct LayerNorm {
    kernel: Kernel,
    algorithm: String,
}

impl LayerNorm {
    /// What is added to the variance.
    pub const EPSILON: f32 = 1e-5;

    /// Compiles for `rows` rows of `columns` elements.
    pub fn new(machine: &Arc<Machine>, kind: FloatKind, rows: usize, columns: usize) -> Result<Self, NativeError> {
        let rows = checked_size("the number of rows", rows)?;
        let columns = checked_size("the length of a row", columns)?;
        let cut = Cut::of_rows(kind, columns);
        let name = format!("layer_norm_{kind}");
        let geometry = Geometry {
            // At most `rows`, which was checked.
            blocks: rows.div_ceil(cut.rows) as u32,
            threads: (cut.threads as u32, cut.rows as u32),
        };
        Ok(Self {
            kernel: Kernel::prepare(
                machine,
                Source::LayerNorm,
                &name,
                cut.macros(&name, kind),
                Extent::of_matrix(kind, rows, columns),
                geometry,
            )?,
            algorithm: cut.describe(&name),
        })
    }

    /// Bytes of the input, and of the output.
    pub fn bytes(&self) -> usize {
        self.kernel.bytes()
    }

    /// Enqueues one run.
    pub fn enqueue(&self, x: &Buffer, y: &mut Buffer) -> Result<(), NativeError> {
        self.kernel.enqueue(&x.memory, &mut y.memory)
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

/// How the elements of a row are dealt to threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    /// Elements in one access.
    width: usize,
    /// Threads for one row: whole warps.
    threads: usize,
    /// Rows in one block.
    rows: usize,
    /// Accesses per thread, whose values stay in registers; `None` if the row is too long for that.
    pieces: Option<usize>,
}

impl Cut {
    /// Enough elements per thread to keep several loads in flight.
    const ELEMENTS_PER_THREAD: usize = 16;
    /// More would not fit the 64 registers that a thread of a full block has.
    const MOST_ELEMENTS_PER_THREAD: usize = 32;
    const WARP: usize = 32;
    const MOST_THREADS: usize = 1024;
    /// Short rows share a block of this size.
    const SMALL_BLOCK: usize = 128;

    fn of_rows(kind: FloatKind, columns: usize) -> Self {
        let width = if columns.is_multiple_of(widest(kind)) { widest(kind) } else { 1 };
        let threads = columns.div_ceil(Self::ELEMENTS_PER_THREAD).next_multiple_of(Self::WARP).min(Self::MOST_THREADS);
        let pieces = (columns / width).div_ceil(threads);
        Self {
            width,
            threads,
            rows: (Self::SMALL_BLOCK / threads).max(1),
            pieces: (pieces * width <= Self::MOST_ELEMENTS_PER_THREAD).then_some(pieces),
        }
    }

    fn macros(&self, name: &str, kind: FloatKind) -> Vec<String> {
        let mut macros = common_macros(name, kind, self.width);
        macros.push(format!("THREADS={}", self.threads));
        macros.push(format!("ROWS={}", self.rows));
        macros.push(format!("PIECES={}", self.pieces.unwrap_or(0)));
        macros.push(format!("EPSILON={:e}f", LayerNorm::EPSILON));
        macros
    }

    fn describe(&self, name: &str) -> String {
        let Self { width, threads, rows, pieces } = self;
        let kept = match pieces {
            Some(pieces) => format!("{pieces} accesses per thread kept in registers"),
            None => "row read three times".to_string(),
        };
        format!("{name}: {threads} threads per row, {rows} rows per block, {width} elements per access, {kept}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn every_row_length_is_covered_by_whole_accesses_of_whole_warps() {
        for kind in FloatKind::ALL {
            for columns in (1..5000).chain([8191, 8192, 16384, 32767, 32768, 32769, 65536, 70001]) {
                let cut = Cut::of_rows(kind, columns);
                assert_eq!(columns % cut.width, 0, "{kind} {columns} {cut:?}");
                assert_eq!(cut.threads % 32, 0, "{kind} {columns} {cut:?}");
                assert!(cut.threads * cut.rows <= 1024, "{kind} {columns} {cut:?}");
                if let Some(pieces) = cut.pieces {
                    assert!(cut.threads * pieces * cut.width >= columns, "{kind} {columns} {cut:?}");
                }
            }
        }
    }

    #[test]
    fn usual_rows_are_read_once_in_wide_accesses() {
        for kind in FloatKind::ALL {
            for columns in [768, 1024, 4096, 8192, 32768] {
                let cut = Cut::of_rows(kind, columns);
                assert_eq!(cut.width, widest(kind));
                assert!(cut.pieces.is_some(), "{kind} {columns} {cut:?}");
            }
        }
        assert_eq!(Cut::of_rows(FloatKind::BF16, 65536).pieces, None);
    }

    #[test]
    fn the_source_compiles_for_every_way_to_cut_a_row() {
        for kind in FloatKind::ALL {
            for columns in [1, 257, 768, 1025, 4096, 32768, 65536, 70001] {
                assert_compiles(Source::LayerNorm, &Cut::of_rows(kind, columns).macros("layer_norm", kind));
            }
        }
    }
}
