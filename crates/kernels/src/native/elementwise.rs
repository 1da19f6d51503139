//! Functions of single elements, or of two at the same place.

use std::{fmt, sync::Arc};

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
};
use crate::Dtype;
use calorimeter_case::Activation;

/// What is computed for each element.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ElementwiseFunction {
    /// y = a, to the bit.
    Copy,
    /// y = factor · a.
    Scale(f32),
    /// y = a + b.
    Add,
    /// y = a + factor · b, rounded once.
    Triad(f32),
    /// y = 1 / (1 + exp(-a)).
    Sigmoid,
    /// y = a sigmoid(a).
    Silu,
    /// y = a times the normal distribution function of a.
    Gelu,
    /// Its approximation by a hyperbolic tangent.
    GeluTanh,
    /// y = a sigmoid(a) b.
    SiluMul,
    /// y = b times the slope of an activation at a: its gradient, of that of what it made.
    Gradient(Activation),
}

impl ElementwiseFunction {
    /// Its name in lower case, which is also its name in the CUDA source.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Scale(_) => "scale",
            Self::Add => "add",
            Self::Triad(_) => "triad",
            Self::Sigmoid => "sigmoid",
            Self::Silu => "silu",
            Self::Gelu => "gelu",
            Self::GeluTanh => "gelu_tanh",
            Self::SiluMul => "silu_mul",
            Self::Gradient(Activation::Relu) => "relu_gradient",
            Self::Gradient(Activation::Sigmoid) => "sigmoid_gradient",
            Self::Gradient(Activation::LeakyRelu) => "leakyrelu_gradient",
            Self::Gradient(Activation::Relu6) => "relu6_gradient",
            Self::Gradient(Activation::Gelu) => "gelu_gradient",
            Self::Gradient(Activation::Silu) => "silu_gradient",
            Self::Gradient(Activation::HardSwish) => "hardswish_gradient",
        }
    }

    /// How many inputs it has.
    pub const fn inputs(self) -> usize {
        match self {
            Self::Add | Self::Triad(_) | Self::SiluMul | Self::Gradient(_) => 2,
            _ => 1,
        }
    }

    fn factor(self) -> f32 {
        match self {
            Self::Scale(factor) | Self::Triad(factor) => factor,
            _ => 1.0,
        }
    }

    /// Accesses of a thread for each input, as was fastest: with more of them fewer threads ask memory at once.
    fn pieces(self) -> usize {
        self.inputs()
    }
}

impl fmt::Display for ElementwiseFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A plan of y = f(a) or y = f(a, b) for every element, computed in f32 and rounded to the element type.
#[derive(Debug)]
pub struct Elementwise {
    kernel: Kernel,
    algorithm: String,
}

const THREADS: usize = 256;

impl Elementwise {
    /// Compiles for `length` elements.
    pub fn new(
        machine: &Arc<Machine>,
        kind: Dtype,
        function: ElementwiseFunction,
        length: usize,
    ) -> Result<Self, NativeError> {
        let (width, pieces) = (widest(kind), function.pieces());
        // Far within what the blocks of a grid can cover.
        let limit = (i32::MAX as usize) * width;
        if !(1..=limit).contains(&length) {
            return Err(NativeError::InvalidSize { what: "the number of elements", limit, value: length });
        }
        let blocks = (length / width).div_ceil(THREADS * pieces).max(1);
        let name = format!("{function}_{kind}");
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let bytes = length * kind.width();
        let extent = Extent {
            reads: ["a", "b"][..function.inputs()].iter().map(|&what| (what, bytes)).collect(),
            writes: vec![("y", bytes)],
            sizes: (length as u64, function.factor().to_bits().into()),
        };
        let macros = macros(&name, kind, function);
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::Elementwise, &name, macros, extent, geometry)?,
            algorithm: format!("{name}: {THREADS} threads per block, {pieces} accesses of {width} elements per thread"),
        })
    }

    /// Bytes of each input, and of the output.
    pub fn bytes(&self) -> usize {
        self.kernel.bytes()
    }

    /// Enqueues one run on as many inputs as the function has.
    pub fn enqueue(&self, inputs: &[&Buffer], y: &mut Buffer) -> Result<(), NativeError> {
        let inputs: Vec<_> = inputs.iter().map(|input| &input.memory).collect();
        self.kernel.enqueue_all(&inputs, &mut [&mut y.memory])
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

fn macros(name: &str, kind: Dtype, function: ElementwiseFunction) -> Vec<String> {
    let mut macros = common_macros(name, kind, widest(kind));
    macros.push(format!("THREADS={THREADS}"));
    macros.push(format!("PIECES={}", function.pieces()));
    macros.push(format!("INPUTS={}", function.inputs()));
    macros.push(format!("OPERATION={function}"));
    macros.push(format!("COPY={}", u8::from(function == ElementwiseFunction::Copy)));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_function_and_kind() {
        use ElementwiseFunction::{Add, Copy, Gelu, GeluTanh, Gradient, Scale, Sigmoid, Silu, SiluMul, Triad};
        let functions = [Copy, Scale(3.0), Add, Triad(3.0), Sigmoid, Silu, Gelu, GeluTanh, SiluMul];
        for kind in Dtype::ALL {
            for function in functions.into_iter().chain(Activation::ALL.map(Gradient)) {
                assert_compiles(Source::Elementwise, &macros("elementwise", kind, function));
            }
        }
    }
}
