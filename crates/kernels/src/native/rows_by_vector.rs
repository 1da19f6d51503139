//! The product of a row-major matrix with a vector.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    row_cut::RowCut,
    sizes::checked_size,
};
use crate::Dtype;

/// A plan of y = a x for a of rows by columns and x of columns, computed in f32 and rounded to their type.
#[derive(Debug)]
pub struct RowsByVector {
    kernel: Kernel,
    algorithm: String,
}

impl RowsByVector {
    /// Compiles for `rows` rows of `columns` elements.
    pub fn new(machine: &Arc<Machine>, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        let rows = checked_size("the number of rows", rows)?;
        let columns = checked_size("the length of a row", columns)?;
        let cut = cut(kind, columns);
        let name = format!("rows_by_vector_{kind}");
        let geometry = Geometry {
            // At most `rows`, which was checked.
            blocks: rows.div_ceil(cut.rows) as u32,
            threads: (cut.threads as u32, cut.rows as u32),
        };
        let extent = Extent {
            reads: vec![("a", rows * columns * kind.width()), ("x", columns * kind.width())],
            writes: vec![("y", rows * kind.width())],
            sizes: (rows as u64, columns as u64),
        };
        let macros = macros(&name, kind, columns, cut);
        let RowCut { width, threads, rows, .. } = cut;
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::RowsByVector, &name, macros, extent, geometry)?,
            algorithm: format!(
                "{name}: {threads} threads per row, {rows} rows per block, {} accesses of {width} elements per thread in \
                 flight",
                in_flight(columns, cut)
            ),
        })
    }

    /// Enqueues one run.
    pub fn enqueue(&self, a: &Buffer, x: &Buffer, y: &mut Buffer) -> Result<(), NativeError> {
        self.kernel.enqueue_all(&[&a.memory, &x.memory], &mut [&mut y.memory])
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

/// Four accesses of 16 bytes of bf16 or f16.
const ELEMENTS_PER_THREAD: usize = 32;
const MOST_IN_FLIGHT: usize = 4;

fn cut(kind: Dtype, columns: usize) -> RowCut {
    RowCut::new(columns, widest(kind), ELEMENTS_PER_THREAD)
}

fn in_flight(columns: usize, cut: RowCut) -> usize {
    (columns / cut.width).div_ceil(cut.threads).min(MOST_IN_FLIGHT)
}

fn macros(name: &str, kind: Dtype, columns: usize, cut: RowCut) -> Vec<String> {
    let mut macros = common_macros(name, kind, cut.width);
    macros.push(format!("THREADS={}", cut.threads));
    macros.push(format!("ROWS={}", cut.rows));
    macros.push(format!("PIECES={}", in_flight(columns, cut)));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_way_to_cut_a_row() {
        for kind in Dtype::ALL {
            for columns in [1, 257, 768, 4096, 32768, 70001] {
                assert_compiles(Source::RowsByVector, &macros("rows_by_vector", kind, columns, cut(kind, columns)));
            }
        }
    }
}
