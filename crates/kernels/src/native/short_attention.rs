//! Attention of short sequences.

use std::sync::Arc;

use super::{
    Buffer, ComputeCapability, Machine, NativeError,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    sizes::checked_size,
};
use crate::Dtype;

/// A plan of attention without masks among the 16 tokens of each sequence: y = softmax(q kᵀ / √head) v for each head,
/// computed in f32. Rows of x are q, k and v of a token side by side, each head by head; rows of y its heads.
#[derive(Debug)]
pub struct ShortAttention {
    kernel: Kernel,
    algorithm: String,
}

/// Tokens that a warp makes the output of: keys and values are read once for all of them.
const QUERIES: usize = 2;
/// Warps of a block, each of which makes a head by tensor cores.
const TILES: usize = 4;

impl ShortAttention {
    /// Tokens of a sequence.
    pub const TOKENS: usize = 16;

    /// Compiles for so many sequences, with `heads` heads of `head` numbers.
    pub fn new(
        machine: &Arc<Machine>,
        kind: Dtype,
        sequences: usize,
        heads: usize,
        head: usize,
    ) -> Result<Self, NativeError> {
        let blocks = checked_size("the number of heads of all sequences", sequences * heads)?;
        checked_size("the length of a row", 3 * heads * head)?;
        let by_tensor_cores = tiles_are_for(kind, head, machine.compute_capability());
        let name = format!("short_attention{}_{kind}", if by_tensor_cores { "_tiles" } else { "" });
        let bytes = sequences * Self::TOKENS * heads * head * kind.width();
        let extent = Extent { reads: vec![("x", 3 * bytes)], writes: vec![("y", bytes)], sizes: (sequences as u64, 0) };
        let prepare = |source: Source, blocks: usize, warps: usize, macros: Vec<String>| {
            let geometry = Geometry { blocks: blocks as u32, threads: (32, warps as u32) };
            Kernel::prepare(machine, source, &name, macros, extent, geometry)
        };
        if by_tensor_cores {
            let macros = macros_of_tiles(&name, kind, heads, head);
            return Ok(Self {
                kernel: prepare(Source::ShortAttentionTiles, blocks.div_ceil(TILES), TILES, macros)?,
                algorithm: format!("{name}: a warp for each head of a sequence, {TILES} per block, by tensor cores"),
            });
        }
        let macros = macros(&name, kind, heads, head);
        Ok(Self {
            kernel: prepare(Source::ShortAttention, blocks, Self::TOKENS / QUERIES, macros)?,
            algorithm: format!(
                "{name}: a block for each head of a sequence, {QUERIES} tokens per warp, {} elements per access",
                width(kind, head)
            ),
        })
    }

    /// Enqueues one run.
    pub fn enqueue(&self, x: &Buffer, y: &mut Buffer) -> Result<(), NativeError> {
        self.enqueue_memory(&x.memory, &mut y.memory)
    }

    pub(super) fn enqueue_memory(&self, x: &Memory, y: &mut Memory) -> Result<(), NativeError> {
        self.kernel.enqueue(x, y)
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

/// Elements in one access of a head.
pub(super) fn width(kind: Dtype, head: usize) -> usize {
    if head.is_multiple_of(widest(kind)) { widest(kind) } else { 1 }
}

/// Whether lanes can take whole pieces of a head's numbers, and tensor cores multiply these.
pub(super) fn tiles_are_for(kind: Dtype, head: usize, capability: ComputeCapability) -> bool {
    kind != Dtype::F32 && head.is_multiple_of(32) && capability >= ComputeCapability::WARP_MAXIMA
}

fn macros_of_tiles(name: &str, kind: Dtype, heads: usize, head: usize) -> Vec<String> {
    let mut macros = of_heads(name, kind, heads, head);
    macros.push(format!("WARPS={TILES}"));
    macros
}

fn macros(name: &str, kind: Dtype, heads: usize, head: usize) -> Vec<String> {
    let mut macros = of_heads(name, kind, heads, head);
    macros.push(format!("QUERIES={QUERIES}"));
    macros
}

/// What every kernel of such attention needs to know.
pub(super) fn of_heads(name: &str, kind: Dtype, heads: usize, head: usize) -> Vec<String> {
    let mut macros = common_macros(name, kind, width(kind, head));
    macros.push(format!("TOKENS={}", ShortAttention::TOKENS));
    macros.push(format!("HEADS={heads}"));
    macros.push(format!("HEAD={head}"));
    macros.push(format!("SCALE={:e}f", (head as f64).sqrt().recip()));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_kind_and_length_of_heads() {
        for kind in Dtype::ALL {
            for head in [1, 17, 128, 512] {
                assert_compiles(Source::ShortAttention, &macros("short_attention", kind, 8, head));
                if tiles_are_for(kind, head, ComputeCapability::WARP_GROUPS) {
                    assert_compiles(Source::ShortAttentionTiles, &macros_of_tiles("short_attention", kind, 8, head));
                }
            }
        }
    }
}
