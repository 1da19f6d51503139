//! Transposition of byte matrices, for float8 operands that are not contiguous along k.

use super::{
    CudaDevice, CudaKernel, NativeError,
    kernel::{KernelArgs, LaunchGeometry},
    nvrtc::CudaSource,
    sizes::check_matrix,
};

impl CudaKernel {
    /// Transposition of one-byte elements; accesses have 16 bytes if both sizes are multiples of 16. Input: x[rows,
    /// columns]; output: xᵀ[columns, rows].
    pub fn transpose_bytes(device: &CudaDevice, rows: usize, columns: usize) -> Result<Self, NativeError> {
        check_matrix(rows, columns)?;
        let tile = TransposeTile::new(rows, columns);
        let name = "transpose_bytes";
        let bytes = rows * columns;
        let args = KernelArgs::new([("x", bytes)], [("y", bytes)], (rows, columns));
        let (macros, geometry) = (tile.macros(name), tile.geometry(rows, columns)?);
        let kernel = Self::prepare(device, CudaSource::TransposeBytes, name, macros, args, geometry)?;
        Ok(kernel.with_description(tile.describe(name)))
    }
}

/// Tile of a thread or block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TransposeTile {
    /// 16 by 16 bytes in the registers of a thread.
    Registers,
    /// 32 by 32 bytes in the shared memory of a block.
    Tiles,
}

impl TransposeTile {
    const THREADS: usize = 256;
    /// Register limit for three resident blocks: 65536 registers over 768 threads, rounded down to a multiple of 8.
    const REGISTERS: usize = 80;
    /// Threads per row: a row is read in 64 contiguous bytes, a column written in 128.
    const LANES: usize = 4;
    const SIDE: usize = 16;
    const TILE: usize = 32;

    fn new(rows: usize, columns: usize) -> Self {
        let whole = rows.is_multiple_of(Self::SIDE) && columns.is_multiple_of(Self::SIDE);
        if whole { Self::Registers } else { Self::Tiles }
    }

    fn geometry(self, rows: usize, columns: usize) -> Result<LaunchGeometry, NativeError> {
        let (down, across) = match self {
            Self::Registers => (Self::THREADS / Self::LANES * Self::SIDE, Self::LANES * Self::SIDE),
            Self::Tiles => (Self::TILE, Self::TILE),
        };
        LaunchGeometry::new(rows.div_ceil(down) * columns.div_ceil(across), (Self::THREADS, 1))
    }

    fn macros(self, name: &str) -> Vec<String> {
        let mut macros = vec![format!("KERNEL={name}"), format!("THREADS={}", Self::THREADS)];
        match self {
            Self::Registers => {
                let (lanes, registers) = (Self::LANES, Self::REGISTERS);
                macros.extend([
                    "IN_REGISTERS=1".into(),
                    format!("LANES_PER_ROW={lanes}"),
                    format!("MAX_REGISTERS={registers}"),
                ]);
            }
            Self::Tiles => macros.push("IN_REGISTERS=0".into()),
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
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_both_tiles() {
        for tile in [TransposeTile::Registers, TransposeTile::Tiles] {
            assert_compiles(CudaSource::TransposeBytes, &tile.macros("transpose_bytes"));
        }
        assert_eq!(
            (TransposeTile::new(64, 48), TransposeTile::new(64, 40)),
            (TransposeTile::Registers, TransposeTile::Tiles)
        );
    }
}
