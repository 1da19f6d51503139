//! Activations of single elements.

use calorimeter_case::Activation as ActivationFunction;
use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
};
use crate::Dtype;

/// A plan of y = f(x) for every element, computed in f32 and stored in the element type.
#[derive(Debug)]
pub struct Activation {
    kernel: Kernel,
    algorithm: String,
}

const THREADS: usize = 256;
/// So that each thread has two loads of 16 bytes in flight.
const PIECES: usize = 2;

impl Activation {
    /// Compiles for `length` elements.
    pub fn new(
        machine: &Arc<Machine>,
        kind: Dtype,
        function: ActivationFunction,
        length: usize,
    ) -> Result<Self, NativeError> {
        let width = widest(kind);
        // Far within what the blocks of a grid can cover.
        let limit = (i32::MAX as usize) * width;
        if !(1..=limit).contains(&length) {
            return Err(NativeError::InvalidSize { what: "the number of elements", limit, value: length });
        }
        let blocks = (length / width).div_ceil(THREADS * PIECES).max(1);
        let name = format!("{function}_{kind}");
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let (macros, extent) = (macros(&name, kind, function), Extent::of_matrix(kind, 1, length));
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::Activation, &name, macros, extent, geometry)?,
            algorithm: format!("{name}: {THREADS} threads per block, {PIECES} accesses of {width} elements per thread"),
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

    /// Enqueues one run that replaces its input.
    pub fn enqueue_in_place(&self, x: &mut Buffer) -> Result<(), NativeError> {
        self.kernel.enqueue_in_place(&mut x.memory)
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

fn macros(name: &str, kind: Dtype, function: ActivationFunction) -> Vec<String> {
    let mut macros = common_macros(name, kind, widest(kind));
    macros.push(format!("THREADS={THREADS}"));
    macros.push(format!("PIECES={PIECES}"));
    macros.push(format!("ACTIVATE={function}"));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_function_and_kind() {
        for kind in Dtype::ALL {
            for function in ActivationFunction::ALL {
                assert_compiles(Source::Activation, &macros("activation", kind, function));
            }
        }
    }
}
