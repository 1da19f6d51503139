//! Sums over the rows of an f32 matrix.

use std::sync::Arc;

use super::{
    Machine, NativeError,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
};
use crate::Dtype;

/// A plan of the sum of each column, in an order that is always the same.
#[derive(Debug)]
pub(super) struct ColumnSums {
    kernel: Kernel,
}

/// Columns of a block.
const COLUMNS: usize = 32;
/// Slices of the rows, so that even few columns keep a multiprocessor's memory busy.
const SLICES: usize = 32;

impl ColumnSums {
    /// Compiles for sizes that were checked, and sums of a type.
    pub(super) fn new(machine: &Arc<Machine>, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        let extent = Extent {
            reads: vec![("x", 4 * rows * columns)],
            writes: vec![("y", kind.width() * columns)],
            sizes: (rows as u64, columns as u64),
        };
        let blocks = columns.div_ceil(COLUMNS) as u32;
        let geometry = Geometry { blocks, threads: (COLUMNS as u32, SLICES as u32) };
        let name = "column_sums";
        let kernel = Kernel::prepare(machine, Source::ColumnSums, name, macros(name, kind), extent, geometry)?;
        Ok(Self { kernel })
    }

    /// Enqueues one run.
    pub(super) fn enqueue(&self, x: &Memory, y: &mut Memory) -> Result<(), NativeError> {
        self.kernel.enqueue(x, y)
    }
}

fn macros(name: &str, kind: Dtype) -> Vec<String> {
    let mut macros = common_macros(name, kind, 1);
    macros.push(format!("SLICES={SLICES}"));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_type_of_sums() {
        for kind in Dtype::ALL {
            assert_compiles(Source::ColumnSums, &macros("column_sums", kind));
        }
    }
}
