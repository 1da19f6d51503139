//! Attention of short sequences.

use std::sync::Arc;

use super::{
    Buffer, ComputeCapability, Machine, NativeError,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    sizes::checked_size,
};
use crate::{Dtype, DynamicForm};

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
        if let Some((kernel, algorithm)) = by_tiles(machine, kind, sequences, (heads, head), None)? {
            return Ok(Self { kernel, algorithm });
        }
        let name = format!("short_attention_{kind}");
        let bytes = sequences * Self::TOKENS * heads * head * kind.width();
        let extent = Extent { reads: vec![("x", 3 * bytes)], writes: vec![("y", bytes)], sizes: (sequences as u64, 0) };
        let geometry = Geometry { blocks: blocks as u32, threads: (32, (Self::TOKENS / QUERIES) as u32) };
        let macros = macros(&name, kind, heads, head);
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::ShortAttention, &name, macros, extent, geometry)?,
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

/// By tensor cores, where they can. With a form of codes it also makes the scale of all of y, which is the output after y, and keeps
/// two words in the one after that, 0 between launches.
pub(super) fn by_tiles(
    machine: &Arc<Machine>,
    kind: Dtype,
    sequences: usize,
    (heads, head): (usize, usize),
    scaled: Option<DynamicForm>,
) -> Result<Option<(Kernel, String)>, NativeError> {
    if !tiles_are_for(kind, head, machine.compute_capability()) {
        return Ok(None);
    }
    let of = scaled.map(|form| format!("_{}_scale", form.codes.name())).unwrap_or_default();
    let name = format!("short_attention_tiles{of}_{kind}");
    let bytes = sequences * ShortAttention::TOKENS * heads * head * kind.width();
    let mut writes = vec![("y", bytes)];
    if scaled.is_some() {
        writes.extend([("scale", 4), ("state", 8)]);
    }
    let extent = Extent { reads: vec![("x", 3 * bytes)], writes, sizes: (sequences as u64, 0) };
    let geometry = Geometry { blocks: (sequences * heads).div_ceil(TILES) as u32, threads: (32, TILES as u32) };
    let macros = macros_of_tiles(&name, kind, (heads, head), scaled);
    let kernel = Kernel::prepare(machine, Source::ShortAttentionTiles, &name, macros, extent, geometry)?;
    let algorithm = format!("{name}: a warp for each head of a sequence, {TILES} per block, by tensor cores");
    Ok(Some((kernel, algorithm)))
}

fn macros_of_tiles(name: &str, kind: Dtype, (heads, head): (usize, usize), scaled: Option<DynamicForm>) -> Vec<String> {
    let mut macros = of_heads(name, kind, heads, head);
    macros.push(format!("WARPS={TILES}"));
    macros.extend(scaled.into_iter().flat_map(DynamicForm::macros));
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
    use super::super::{nvrtc::tests::assert_compiles, quantize_input::tests::every_form};
    use super::*;
    use crate::SharedScale;

    #[test]
    fn the_source_compiles_for_every_kind_and_length_of_heads() {
        for kind in Dtype::ALL {
            for head in [1, 17, 128, 512] {
                assert_compiles(Source::ShortAttention, &macros("short_attention", kind, 8, head));
                if tiles_are_for(kind, head, ComputeCapability::WARP_GROUPS) {
                    let scaled = every_form().filter(|form| form.kind == kind && form.shared == SharedScale::Tensor);
                    for scaled in [None].into_iter().chain(scaled.map(Some)) {
                        let macros = macros_of_tiles("short_attention", kind, (8, head), scaled);
                        assert_compiles(Source::ShortAttentionTiles, &macros);
                    }
                }
            }
        }
    }
}
