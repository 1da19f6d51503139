//! Transposing matrices behind each other: what takes images from channels first to channels last, and back.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
    sizes::checked_size,
};
use crate::Dtype;

/// The sizes of the matrices, and how their rows are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatricesForm {
    /// How many there are.
    pub matrices: usize,
    /// Rows of each.
    pub rows: usize,
    /// Columns of each.
    pub columns: usize,
    /// Numbers from one row to the next: no fewer than columns.
    pub from: usize,
    /// The same of the transposes: no fewer than rows. What is beyond them is zero.
    pub to: usize,
}

impl MatricesForm {
    /// Numbers that are read.
    pub fn read(&self) -> usize {
        self.matrices * self.rows * self.from
    }

    /// Numbers that are written.
    pub fn written(&self) -> usize {
        self.matrices * self.columns * self.to
    }
}

/// A plan of the transposes of matrices.
#[derive(Debug)]
pub struct TransposeMatrices {
    kernel: Kernel,
}

const THREADS: usize = 256;
const TILE: usize = 32;

impl TransposeMatrices {
    /// Compiles for one form.
    pub fn new(machine: &Arc<Machine>, kind: Dtype, form: MatricesForm) -> Result<Self, NativeError> {
        let MatricesForm { matrices, rows, columns, from, to } = form;
        checked_size("the number of rows", rows)?;
        checked_size("the length of a row", columns)?;
        assert!(columns <= from && rows <= to, "rows are stored whole");
        let tiles = matrices.saturating_mul(to.div_ceil(TILE) * columns.div_ceil(TILE));
        let blocks = checked_size("the number of blocks", tiles)?;
        let extent = Extent {
            reads: vec![("x", form.read() * kind.width())],
            writes: vec![("y", form.written() * kind.width())],
            sizes: (rows as u64, columns as u64),
        };
        let name = format!("transpose_matrices_{kind}");
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let macros = macros(&name, kind, from, to);
        Ok(Self { kernel: Kernel::prepare(machine, Source::TransposeMatrices, &name, macros, extent, geometry)? })
    }

    /// Enqueues one run.
    pub fn enqueue(&self, x: &Buffer, y: &mut Buffer) -> Result<(), NativeError> {
        self.kernel.enqueue(&x.memory, &mut y.memory)
    }
}

fn macros(name: &str, kind: Dtype, from: usize, to: usize) -> Vec<String> {
    let mut macros = common_macros(name, kind, 1);
    macros.extend([format!("THREADS={THREADS}"), format!("FROM={from}"), format!("TO={to}")]);
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_kind() {
        for kind in Dtype::ALL {
            assert_compiles(Source::TransposeMatrices, &macros("transpose_matrices", kind, 100, 64));
        }
    }
}
