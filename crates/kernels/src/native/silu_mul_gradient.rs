//! The gradients of what a gate lets through.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
};
use crate::Dtype;

/// A plan of the gradients of a and b, given both and that of silu(a) b, computed in f32.
#[derive(Debug)]
pub struct SiluMulGradient {
    kernel: Kernel,
    algorithm: String,
}

const THREADS: usize = 256;
/// So that each thread has six loads of 16 bytes in flight.
const PIECES: usize = 2;

impl SiluMulGradient {
    /// Compiles for `length` elements.
    pub fn new(machine: &Arc<Machine>, kind: Dtype, length: usize) -> Result<Self, NativeError> {
        let width = widest(kind);
        // Far within what the blocks of a grid can cover.
        let limit = (i32::MAX as usize) * width;
        if !(1..=limit).contains(&length) {
            return Err(NativeError::InvalidSize { what: "the number of elements", limit, value: length });
        }
        let blocks = (length / width).div_ceil(THREADS * PIECES).max(1);
        let name = format!("silu_mul_gradient_{kind}");
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let bytes = length * kind.width();
        let extent = Extent {
            reads: vec![("a", bytes), ("b", bytes), ("dy", bytes)],
            writes: vec![("da", bytes), ("db", bytes)],
            sizes: (length as u64, 0),
        };
        let macros = macros(&name, kind);
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::SiluMulGradient, &name, macros, extent, geometry)?,
            algorithm: format!("{name}: {THREADS} threads per block, {PIECES} accesses of {width} elements per thread"),
        })
    }

    /// Enqueues one run on a, b and the gradient of what came of them.
    pub fn enqueue(&self, [a, b, dy]: [&Buffer; 3], da: &mut Buffer, db: &mut Buffer) -> Result<(), NativeError> {
        self.kernel.enqueue_all(&[&a.memory, &b.memory, &dy.memory], &mut [&mut da.memory, &mut db.memory])
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

fn macros(name: &str, kind: Dtype) -> Vec<String> {
    let mut macros = common_macros(name, kind, widest(kind));
    macros.push(format!("THREADS={THREADS}"));
    macros.push(format!("PIECES={PIECES}"));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_kind() {
        for kind in Dtype::ALL {
            assert_compiles(Source::SiluMulGradient, &macros("gradients", kind));
        }
    }
}
