//! e4m3 codes of blocks, each with its scale, as cuBLASLt takes them.

use std::sync::Arc;

use super::{
    Machine, NativeError, Quantize, ScaleSource,
    gpu::ComputeCapability,
    kernel::{Extent, Geometry, Kernel},
    nvrtc::Source,
    sizes::checked_size,
};

/// Numbers of a block, in each direction that it has.
pub(super) const SIDE: usize = 128;
/// Scales that follow each other come in so many.
pub(super) const TOGETHER: usize = 4;
const THREADS: usize = 256;
/// Numbers that a thread reads at once.
const WIDTH: usize = 8;

/// Which numbers are a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blocks {
    OfRows,
    /// The codes are those of the transpose.
    Squares,
}

impl Quantize {
    /// The e4m3 codes of x[rows, columns] in bf16, and an f32 scale for each 128 numbers of a row, from `[rows, columns / 128]`
    /// turned, its rows filled up to fours. Neither scales nor quotients are rounded on the way. Columns come in 128.
    pub fn blocks_of_rows(
        machine: &Arc<Machine>,
        scales: ScaleSource,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        Self::in_blocks(machine, scales, Blocks::OfRows, rows, columns)
    }

    /// The e4m3 codes of xᵀ[columns, rows] from x[rows, columns] in bf16, and an f32 scale for each 128 x 128 numbers,
    /// `[columns / 128, rows / 128]` with rows filled up to fours. Rows and columns come in 128.
    pub fn squares(
        machine: &Arc<Machine>,
        scales: ScaleSource,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        Self::in_blocks(machine, scales, Blocks::Squares, rows, columns)
    }

    fn in_blocks(
        machine: &Arc<Machine>,
        source: ScaleSource,
        blocks: Blocks,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        machine.require("e4m3", ComputeCapability::E4M3)?;
        checked_size("the number of rows", rows)?;
        checked_size("the length of a row", columns)?;
        if !columns.is_multiple_of(SIDE) || blocks == Blocks::Squares && !rows.is_multiple_of(SIDE) {
            return Err(NativeError::NotWholeBlocks { rows, columns, side: SIDE });
        }
        let (name, scales, thread_blocks) = match blocks {
            Blocks::OfRows => {
                let name = format!("{}_blocks_of_rows", source.name());
                let thread_blocks = (rows * columns).div_ceil(THREADS * WIDTH);
                (name, rows.next_multiple_of(TOGETHER) * (columns / SIDE), thread_blocks)
            }
            Blocks::Squares => {
                let (down, across) = (rows / SIDE, columns / SIDE);
                (format!("{}_squares", source.name()), down.next_multiple_of(TOGETHER) * across, down * across)
            }
        };
        let extent = Extent {
            reads: vec![("x", 2 * rows * columns)],
            writes: vec![("codes", rows * columns), ("scales", 4 * scales)],
            sizes: (rows as u64, columns as u64),
        };
        let blocks_of_threads = checked_size("the number of blocks", thread_blocks)? as u32;
        let geometry = Geometry { blocks: blocks_of_threads, threads: (THREADS as u32, 1) };
        let macros = macros(&name, source, blocks);
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::QuantizeBlocks, &name, macros, extent, geometry)?,
            scales_bytes: 4 * scales,
            algorithm: format!("{name}: {blocks_of_threads} blocks of {THREADS} threads"),
        })
    }
}

fn macros(name: &str, scales: ScaleSource, blocks: Blocks) -> Vec<String> {
    let squares = u32::from(blocks == Blocks::Squares);
    let mut macros = vec![format!("KERNEL={name}"), format!("THREADS={THREADS}"), format!("SQUARES={squares}")];
    macros.extend(scales.macros());
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_both_kinds_of_blocks() {
        for scales in [ScaleSource::Largest, ScaleSource::Static] {
            for blocks in [Blocks::OfRows, Blocks::Squares] {
                assert_compiles(Source::QuantizeBlocks, &macros("quantize_blocks", scales, blocks));
            }
        }
    }
}
