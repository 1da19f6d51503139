//! Activations of single elements.

use std::{fmt, sync::Arc};

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
};
use crate::Dtype;

/// A function of one number, with the constants that torch gives it by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActivationFunction {
    /// max(x, 0).
    Relu,
    /// 1 / (1 + exp(-x)).
    Sigmoid,
    /// x, or x / 100 below zero.
    LeakyRelu,
    /// x between 0 and 6.
    Relu6,
    /// x times the normal distribution function, by erf.
    Gelu,
    /// x * sigmoid(x).
    Silu,
    /// x * relu6(x + 3) / 6.
    HardSwish,
}

impl ActivationFunction {
    /// Every function.
    pub const ALL: [Self; 7] =
        [Self::Relu, Self::Sigmoid, Self::LeakyRelu, Self::Relu6, Self::Gelu, Self::Silu, Self::HardSwish];

    /// Its name in lower case, which is also its name in the CUDA source.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Relu => "relu",
            Self::Sigmoid => "sigmoid",
            Self::LeakyRelu => "leakyrelu",
            Self::Relu6 => "relu6",
            Self::Gelu => "gelu",
            Self::Silu => "silu",
            Self::HardSwish => "hardswish",
        }
    }
}

impl fmt::Display for ActivationFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

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
