//! Element-wise functions of one or two operands.

use std::fmt;

use super::{
    CudaDevice, CudaKernel, NativeError,
    kernel::{KernelArgs, LaunchGeometry, common_macros, vector_width},
    nvrtc::CudaSource,
};
use crate::Dtype;
use calorimeter_case::Activation;

/// Threads per block of kernels that process elements independently.
pub(super) const THREADS: usize = 256;

/// Element-wise function.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ElementwiseFunction {
    /// y = a, bit for bit.
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
    /// y = a Φ(a), with the normal distribution function Φ.
    Gelu,
    /// GELU, approximated by tanh.
    GeluTanh,
    /// y = a sigmoid(a) b.
    SiluMul,
    /// Backward pass of an activation: y = f'(a) b, with the upstream gradient b.
    Gradient(Activation),
}

impl ElementwiseFunction {
    /// Name in snake case, identical to the function name in the CUDA source.
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

    /// Number of inputs.
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

    /// Vector accesses per thread and input, chosen by measurement: with more, fewer threads issue loads concurrently.
    fn vectors_per_thread(self) -> usize {
        self.inputs()
    }
}

impl fmt::Display for ElementwiseFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl CudaKernel {
    /// Function y = f(a) or y = f(a, b) of `length` elements, computed in f32 and rounded to the dtype. Inputs: a and,
    /// if the function has two operands, b; output: y.
    pub fn elementwise(
        device: &CudaDevice,
        kind: Dtype,
        function: ElementwiseFunction,
        length: usize,
    ) -> Result<Self, NativeError> {
        let geometry = LaunchGeometry::for_elements(kind, length, THREADS, function.vectors_per_thread())?;
        let name = format!("{function}_{kind}");
        let bytes = length * kind.width();
        let reads = ["a", "b"].map(|operand| (operand, bytes));
        let factor = function.factor().to_bits() as usize;
        let args = KernelArgs::new(&reads[..function.inputs()], [("y", bytes)], (length, factor));
        let macros = macros(&name, kind, function);
        let kernel = Self::prepare(device, CudaSource::Elementwise, &name, macros, args, geometry)?;
        Ok(kernel.with_description(describe_elementwise(&name, kind, function.vectors_per_thread())))
    }
}

/// Macros of a kernel that processes elements independently.
pub(super) fn elementwise_macros(name: &str, kind: Dtype, vectors: usize) -> Vec<String> {
    let own = vec![format!("THREADS={THREADS}"), format!("VECTORS_PER_THREAD={vectors}")];
    [common_macros(name, kind, vector_width(kind)), own].concat()
}

/// Description of a kernel that processes elements independently.
pub(super) fn describe_elementwise(name: &str, kind: Dtype, vectors: usize) -> String {
    let width = vector_width(kind);
    format!("{name}: {THREADS} threads per block, {vectors} accesses of {width} elements per thread")
}

fn macros(name: &str, kind: Dtype, function: ElementwiseFunction) -> Vec<String> {
    let mut macros = elementwise_macros(name, kind, function.vectors_per_thread());
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
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_function_and_dtype() {
        use ElementwiseFunction::{Add, Copy, Gelu, GeluTanh, Gradient, Scale, Sigmoid, Silu, SiluMul, Triad};
        let functions = [Copy, Scale(3.0), Add, Triad(3.0), Sigmoid, Silu, Gelu, GeluTanh, SiluMul];
        for kind in Dtype::ALL {
            for function in functions.into_iter().chain(Activation::ALL.map(Gradient)) {
                assert_compiles(CudaSource::Elementwise, &macros("elementwise", kind, function));
            }
        }
    }
}
