//! Products of e4m3 codes whose second factor is turned on its way to the tensor cores of Hopper.

use std::sync::Arc;

use super::{
    ComputeCapability, Float8Output, LinearShape, Machine, NativeError,
    boxes::Boxes,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
    sizes::{MULTIPROCESSORS, checked_shape, checked_size},
};

/// The kernel.
#[derive(Debug)]
pub(super) struct TurnedProduct {
    kernel: Kernel,
    pub(super) algorithm: String,
}

/// Rows and columns of y in a block's tile, of which two lie beside each other in a cluster.
const TILE: (usize, usize) = (128, 128);
const CLUSTER: usize = 2;
/// A group that brings and two that multiply.
const THREADS: u32 = 3 * 128;
/// Codes of a row of x, and of a column of w, in a step.
const STEP: usize = 128;
/// Steps in a block's memory.
const STAGES: usize = 6;
const SHARED: usize = STAGES * STEP * (TILE.0 + TILE.1);
/// With more, what cuBLASLt gains by codes that run along k may be worth turning them. Compared were 128 and 512: with 512 it is 1.7
/// times as fast as turning first for a w of 268 MB, and no faster for one of 17, which the cache holds. By those rates the two
/// meet between 1000 and 1600 rows of the large one.
const MOST_ROWS: usize = 768;

impl TurnedProduct {
    /// Whether there is one, and it is the fastest.
    pub(super) fn is_for(shape: LinearShape, capability: ComputeCapability) -> bool {
        capability == ComputeCapability::WARP_GROUPS
            && shape.m <= MOST_ROWS
            && shape.k.is_multiple_of(16)
            && shape.n.is_multiple_of(16)
    }

    /// Compiles for sizes that it is for.
    pub(super) fn new(machine: &Arc<Machine>, shape: LinearShape, output: Float8Output) -> Result<Self, NativeError> {
        let LinearShape { m, k, n } = checked_shape(shape)?;
        let name = "turned_product";
        let mut reads = vec![("x", m * k), ("w", k * n)];
        if output.inputs() > 2 {
            reads.extend([("row scales", 4 * m), ("column scales", 4 * n)]);
        }
        if output == Float8Output::Added {
            reads.push(("added", shape.y_bytes(output.kind())));
        }
        let extent = Extent { reads, writes: vec![("y", shape.y_bytes(output.kind()))], sizes: (m as u64, n as u64) };
        let pairs = checked_size("the number of tiles", m.div_ceil(TILE.0) * n.div_ceil(CLUSTER * TILE.1))?;
        let blocks = CLUSTER * pairs.min(MULTIPROCESSORS / CLUSTER);
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS, 1) };
        let kernel = Kernel::prepare(machine, Source::TurnedProduct, name, macros(name, output, k), extent, geometry)?;
        Ok(Self {
            kernel: kernel
                .with_boxes(vec![Boxes::of_codes(0, m, k, TILE.0 / CLUSTER), Boxes::of_codes(1, k, n, STEP)])
                .with_shared(SHARED)?,
            algorithm: format!(
                "{name}: products of warp groups, codes turned in registers, {} rows by {} columns a tile, {blocks} blocks in \
                 clusters of {CLUSTER}, {STAGES} steps of {STEP} codes in a block's memory",
                TILE.0, TILE.1
            ),
        })
    }

    /// Enqueues one run on x, w, the scales of rows and of columns if it is scaled, and what is added.
    pub(super) fn enqueue(&self, inputs: &[&Memory], y: &mut Memory) -> Result<(), NativeError> {
        self.kernel.enqueue_all(inputs, &mut [y])
    }
}

fn macros(name: &str, output: Float8Output, k: usize) -> Vec<String> {
    let mut macros = common_macros(name, output.kind(), 1);
    macros.extend([format!("K={k}"), format!("STAGES={STAGES}"), format!("INPUTS={}", output.inputs())]);
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;
    use crate::Dtype;

    #[test]
    fn it_is_for_few_rows_of_sixteens_on_hopper() {
        let is_for = |m, k, n| {
            let shape = LinearShape { m, k, n };
            assert!(!TurnedProduct::is_for(shape, ComputeCapability::E4M3));
            TurnedProduct::is_for(shape, ComputeCapability::WARP_GROUPS)
        };
        assert!(is_for(1, 16, 16) && is_for(768, 32768, 8192));
        assert!(!is_for(769, 32768, 8192) && !is_for(16, 24, 16) && !is_for(16, 16, 24));
    }

    #[test]
    fn the_source_compiles_for_every_output() {
        use Float8Output::{Added, Plain, Scaled};
        for output in Dtype::ALL.into_iter().flat_map(|kind| [Plain(kind), Scaled(kind)]).chain([Added]) {
            for k in [16, 256, 1104] {
                assert_compiles(Source::TurnedProduct, &macros("turned_product", output, k));
            }
        }
    }
}
