//! What OCP microscaling makes of bf16, for GPUs whose tensor cores do not multiply its codes.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError, ScaleSource,
    gpu::ComputeCapability,
    kernel::{Extent, Geometry, Kernel},
    nvrtc::Source,
    sizes::checked_size,
};
use crate::Dtype;

/// Numbers that share a power of two.
const BLOCK: usize = 32;
const THREADS: usize = 256;

/// A plan of the numbers that e4m3 under a power of two for each 32 holds, rounded up, or under [`ScaleSource::Static`].
#[derive(Debug)]
pub struct MicroNumbers {
    kernel: Kernel,
    algorithm: String,
}

/// Where the numbers of a block lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MicroBlocks {
    /// Next to each other in a row.
    AlongRows,
    /// Below each other in a column.
    DownColumns,
}

impl MicroNumbers {
    /// Compiles for x[rows, columns] in bf16. Blocks are whole.
    pub fn new(
        machine: &Arc<Machine>,
        scales: ScaleSource,
        blocks: MicroBlocks,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        machine.require("e4m3", ComputeCapability::E4M3)?;
        checked_size("the number of rows", rows)?;
        checked_size("the length of a row", columns)?;
        let (down, along, name) = match blocks {
            MicroBlocks::AlongRows => (false, columns, format!("{}_micro_rows", scales.name())),
            MicroBlocks::DownColumns => (true, rows, format!("{}_micro_columns", scales.name())),
        };
        if !along.is_multiple_of(BLOCK) {
            return Err(NativeError::NotWholeBlocks { rows, columns, side: BLOCK });
        }
        let width = width(down, columns);
        let of_a_thread = if down { BLOCK * width } else { width };
        let count = checked_size("the number of blocks", (rows * columns / of_a_thread).div_ceil(THREADS))?;
        let geometry = Geometry { blocks: count as u32, threads: (THREADS as u32, 1) };
        let (macros, extent) = (macros(&name, scales, down, width), Extent::of_matrix(Dtype::Bf16, rows, columns));
        let kernel = Kernel::prepare(machine, Source::MicroNumbers, &name, macros, extent, geometry)?;
        Ok(Self { kernel, algorithm: format!("{name}: {count} blocks of {THREADS} threads") })
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

/// Numbers of a row that a thread reads at once.
fn width(down: bool, columns: usize) -> usize {
    match down {
        false => 8,
        true if columns.is_multiple_of(2) => 2,
        true => 1,
    }
}

fn macros(name: &str, scales: ScaleSource, down: bool, width: usize) -> Vec<String> {
    let mut macros = vec![format!("KERNEL={name}"), format!("THREADS={THREADS}")];
    macros.extend([format!("DOWN={}", u32::from(down)), format!("WIDTH={width}")]);
    macros.extend(scales.macros());
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_both_directions() {
        for scales in [ScaleSource::Largest, ScaleSource::Static] {
            for (down, width) in [(false, 8), (true, 2), (true, 1)] {
                assert_compiles(Source::MicroNumbers, &macros("micro_numbers", scales, down, width));
            }
        }
    }
}
