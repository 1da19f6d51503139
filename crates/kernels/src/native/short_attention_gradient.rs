//! The gradient of attention of short sequences.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError, ShortAttention,
    kernel::{Extent, Geometry, Kernel},
    nvrtc::Source,
    short_attention::{of_heads, width},
    sizes::checked_size,
};
use crate::Dtype;

/// A plan of the gradient of x, given x and that of what [`ShortAttention`] made of it: rows of q, k and v side by side.
#[derive(Debug)]
pub struct ShortAttentionGradient {
    kernel: Kernel,
    algorithm: String,
}

/// Tokens of a warp: what the others have is read once for all of them.
const OWN: usize = 2;

impl ShortAttentionGradient {
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
        let name = format!("short_attention_gradient_{kind}");
        let bytes = sequences * ShortAttention::TOKENS * heads * head * kind.width();
        let extent = Extent {
            reads: vec![("x", 3 * bytes), ("dy", bytes)],
            writes: vec![("dx", 3 * bytes)],
            sizes: (sequences as u64, 0),
        };
        let threads = (32, (ShortAttention::TOKENS / OWN) as u32);
        let geometry = Geometry { blocks: blocks as u32, threads };
        let macros = macros(&name, kind, heads, head);
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::ShortAttentionGradient, &name, macros, extent, geometry)?,
            algorithm: format!(
                "{name}: a block for each head of a sequence, {OWN} tokens per warp, {} elements per access",
                width(kind, head)
            ),
        })
    }

    /// Enqueues one run.
    pub fn enqueue(&self, x: &Buffer, dy: &Buffer, dx: &mut Buffer) -> Result<(), NativeError> {
        self.kernel.enqueue_all(&[&x.memory, &dy.memory], &mut [&mut dx.memory])
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

fn macros(name: &str, kind: Dtype, heads: usize, head: usize) -> Vec<String> {
    let mut macros = of_heads(name, kind, heads, head);
    macros.push(format!("OWN={OWN}"));
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
                assert_compiles(Source::ShortAttentionGradient, &macros("gradient", kind, 8, head));
            }
        }
    }
}
