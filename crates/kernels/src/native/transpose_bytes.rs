//! Transposing matrices of bytes: what cuBLASLt needs before it multiplies codes that do not run along k.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel},
    nvrtc::Source,
    sizes::checked_size,
};

/// A plan of y[columns, rows] = x[rows, columns]ᵀ for elements of one byte.
#[derive(Debug)]
pub struct TransposeBytes {
    kernel: Kernel,
    algorithm: String,
}

impl TransposeBytes {
    /// Compiles for x[rows, columns]. Accesses are of 16 bytes if both come in sixteens.
    pub fn new(machine: &Arc<Machine>, rows: usize, columns: usize) -> Result<Self, NativeError> {
        let rows = checked_size("the number of rows", rows)?;
        let columns = checked_size("the length of a row", columns)?;
        let cut = Cut::new(rows, columns);
        let name = "transpose_bytes";
        let bytes = rows * columns;
        let extent =
            Extent { reads: vec![("x", bytes)], writes: vec![("y", bytes)], sizes: (rows as u64, columns as u64) };
        let geometry = cut.geometry(rows, columns)?;
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::TransposeBytes, name, cut.macros(name), extent, geometry)?,
            algorithm: cut.describe(name),
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

/// What one thread, or one block, turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// 16 by 16 bytes in the registers of a thread.
    Registers,
    /// 32 by 32 bytes in the shared memory of a block.
    Tiles,
}

impl Cut {
    const THREADS: usize = 256;
    /// So that three blocks share a multiprocessor: its 65536 registers over 768 threads, in eights.
    const REGISTERS: usize = 80;
    /// Threads that share a row: 64 bytes of a row are read at once, and 128 of a column written.
    const LANES: usize = 4;
    const SIDE: usize = 16;
    const TILE: usize = 32;

    fn new(rows: usize, columns: usize) -> Self {
        let whole = rows.is_multiple_of(Self::SIDE) && columns.is_multiple_of(Self::SIDE);
        if whole { Self::Registers } else { Self::Tiles }
    }

    fn geometry(self, rows: usize, columns: usize) -> Result<Geometry, NativeError> {
        let (down, across) = match self {
            Self::Registers => (Self::THREADS / Self::LANES * Self::SIDE, Self::LANES * Self::SIDE),
            Self::Tiles => (Self::TILE, Self::TILE),
        };
        let blocks = checked_size("the number of blocks", rows.div_ceil(down) * columns.div_ceil(across))?;
        Ok(Geometry { blocks: blocks as u32, threads: (Self::THREADS as u32, 1) })
    }

    fn macros(self, name: &str) -> Vec<String> {
        let mut macros = vec![format!("KERNEL={name}"), format!("THREADS={}", Self::THREADS)];
        match self {
            Self::Registers => {
                let (lanes, registers) = (Self::LANES, Self::REGISTERS);
                macros.extend(["WIDE=1".into(), format!("LANES={lanes}"), format!("REGISTERS={registers}")]);
            }
            Self::Tiles => macros.push("WIDE=0".into()),
        }
        macros
    }

    fn describe(self, name: &str) -> String {
        match self {
            Self::Registers => format!("{name}: {0} by {0} bytes per thread in registers", Self::SIDE),
            Self::Tiles => format!("{name}: tiles of {0} by {0}", Self::TILE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_both_ways_to_cut() {
        for cut in [Cut::Registers, Cut::Tiles] {
            assert_compiles(Source::TransposeBytes, &cut.macros("transpose_bytes"));
        }
        assert_eq!((Cut::new(64, 48), Cut::new(64, 40)), (Cut::Registers, Cut::Tiles));
    }
}
