//! Attention of any number of positions.

use std::sync::Arc;

use super::{
    Buffer, ComputeCapability, Machine, NativeError,
    boxes::Boxes,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    sizes::checked_size,
};
use crate::Dtype;

/// The sizes of an attention, and what it hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionForm {
    /// Heads of all sequences.
    pub heads: usize,
    /// Positions of a sequence.
    pub positions: usize,
    /// Numbers of a position in one head: a multiple of 8, up to 128.
    pub width: usize,
    /// Whether a position sees no later one.
    pub causal: bool,
}

/// A plan of y = softmax(q kᵀ / √width) v for each head, by the tensor cores of Hopper in one pass: scores are not written.
/// Sums and softmax are in f32; the shares of positions are rounded to the type of the values. Each of the four matrices has
/// the positions of a head as rows, head after head.
#[derive(Debug)]
pub struct Attention {
    kernel: Kernel,
    algorithm: String,
}

/// Rows that a block makes, and keys in a tile.
const TILE: usize = 128;
/// Tiles that lie in a block's memory: of q, and two each of k and v.
const TILES: usize = 5;
/// A group that brings tiles and two that multiply.
const THREADS: u32 = 3 * 128;

impl Attention {
    /// Compiles for one form.
    pub fn new(machine: &Arc<Machine>, kind: Dtype, form: AttentionForm) -> Result<Self, NativeError> {
        let AttentionForm { heads, positions, width, causal } = form;
        machine.require_exactly("attention by products of warp groups", ComputeCapability::WARP_GROUPS)?;
        if kind == Dtype::F32 {
            return Err(NativeError::NumberType { what: "attention by tensor cores", kind });
        }
        if !width.is_multiple_of(widest(kind)) || !(1..=TILE).contains(&width) {
            return Err(NativeError::HeadWidth { width });
        }
        checked_size("the number of positions", positions)?;
        let blocks =
            checked_size("the number of heads of all sequences", heads)?.saturating_mul(positions.div_ceil(TILE));
        let blocks = checked_size("the number of blocks", blocks)?;
        let bytes = heads * positions * width * kind.width();
        let extent = Extent {
            reads: vec![("q", bytes), ("k", bytes), ("v", bytes)],
            writes: vec![("y", bytes)],
            sizes: (positions as u64, 0),
        };
        let name = format!("attention_{kind}");
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS, 1) };
        let macros = macros(&name, kind, width, causal);
        let kernel = Kernel::prepare(machine, Source::Attention, &name, macros, extent, geometry)?;
        let boxes = |input| Boxes { input, kind, matrices: heads, rows: positions, columns: width, height: TILE };
        let boxes = [0, 1, 2].map(boxes).to_vec();
        Ok(Self {
            kernel: kernel.with_boxes(boxes).with_shared(TILES * TILE * padded(width) * kind.width())?,
            algorithm: format!("{name}: {TILE} rows a block, tiles of {TILE} keys, products of warp groups"),
        })
    }

    /// Enqueues one run.
    pub fn enqueue(&self, q: &Buffer, k: &Buffer, v: &Buffer, y: &mut Buffer) -> Result<(), NativeError> {
        self.kernel.enqueue_all(&[&q.memory, &k.memory, &v.memory], &mut [&mut y.memory])
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

/// Numbers of a position in a block's memory.
fn padded(width: usize) -> usize {
    width.next_multiple_of(64)
}

fn macros(name: &str, kind: Dtype, width: usize, causal: bool) -> Vec<String> {
    let mut macros = common_macros(name, kind, widest(kind));
    macros.push(format!("HEAD={width}"));
    macros.push(format!("PADDED={}", padded(width)));
    macros.push(format!("CAUSAL={}", u8::from(causal)));
    macros.push(format!("SCALE={:e}f", (width as f64).sqrt().recip()));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_width_with_and_without_a_mask() {
        for kind in [Dtype::F16, Dtype::Bf16] {
            for width in [8, 64, 72, 128] {
                for causal in [false, true] {
                    assert_compiles(Source::Attention, &macros("attention", kind, width, causal));
                }
            }
        }
    }
}
