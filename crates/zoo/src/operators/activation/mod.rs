//! Activations, element by element.

use super::rows::{self, AXES, copies, count, floats, input, whole};
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite, burn_or_cube};
use crate::{Activation, Device, Fill, Implementation, Matrix, Operand, Pass, Sample, Slot, Value};
use burn::tensor::{DType, Tensor, backend::Backend};
use calorimeter_recipes::FloatType;

/// An activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Elementwise {
    /// x Φ(x), with the error function.
    Gelu,
    /// The approximation of the same by a hyperbolic tangent.
    GeluTanh,
    /// x sigmoid(x).
    Silu,
}

/// √(2/π).
const SLOPE: f64 = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
const CUBIC: f64 = 0.044715;

impl Elementwise {
    /// Its value in double precision.
    fn exact(self, x: f64) -> f64 {
        match self {
            Self::Gelu => Activation::Gelu.exact(x),
            Self::GeluTanh => 0.5 * x * (1.0 + (SLOPE * (x + CUBIC * x * x * x)).tanh()),
            Self::Silu => Activation::Silu.exact(x),
        }
    }

    fn apply<B: Backend>(self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        match self {
            Self::Gelu => Activation::Gelu.apply(x),
            Self::GeluTanh => {
                // Not burn's own: its cube is a power, which GPUs do not define for negative numbers.
                let cube = x.clone() * x.clone() * x.clone();
                let inner = (x.clone() + cube * CUBIC) * SLOPE;
                x * (inner.tanh() + 1.0) * 0.5
            }
            Self::Silu => Activation::Silu.apply(x),
        }
    }
}

impl Operation for Elementwise {
    const ABOUT: &'static str = "an activation, element by element";
    const SUITE: Suite = Suite::Ops;

    fn all() -> Vec<Self> {
        vec![Self::Gelu, Self::GeluTanh, Self::Silu]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Gelu => "gelu",
            Self::GeluTanh => "gelu_tanh",
            Self::Silu => "silu",
        }
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        // Far enough from zero for the tails to be seen.
        vec![input(spec).filled(Fill::Offset)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![whole(spec)]
    }

    // A function such as erf, tanh or exp counts as one.
    fn flops(&self, spec: &Spec) -> u64 {
        let each = match self {
            // Scale, erf, add, multiply, halve.
            Self::Gelu => 5,
            // Three products and a sum, scale, tanh, add, multiply, halve.
            Self::GeluTanh => 9,
            // Negate, exp, add, divide.
            Self::Silu => 4,
        };
        each * count(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        match self {
            Self::Gelu | Self::Silu => copies(spec, 2),
            Self::GeluTanh => copies(spec, 3),
        }
    }

    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        sample.by_elements(|row, col| self.exact(f64::from(inputs[0].row(row)[col])))
    }

    // The two kinds of GELU differ by less than f16 and bf16 round, so only f32 tells one from the other.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        rows::element_wise(spec)
    }

    fn supported(&self, _: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        burn_or_cube(self.name(), implementation, device)
    }

    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let (function, dtype) = (*self, spec.dtype().burn());
        let [x] = floats(inputs);
        Box::new(move || vec![Value::Float(function.apply(x.clone().cast(DType::F32)).cast(dtype))])
    }

    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    fn cube<R: burn_cubecl::CubeRuntime>(
        &self,
        _: &Spec,
        inputs: Vec<Value<crate::CubeOf<R>>>,
    ) -> Result<Pass<crate::CubeOf<R>>, crate::ZooError> {
        use calorimeter_kernels::cube;
        let activation = match self {
            Self::Gelu => cube::Activation::Gelu,
            Self::GeluTanh => cube::Activation::GeluTanh,
            Self::Silu => cube::Activation::Silu,
        };
        super::cubed::pass(inputs, move |client, size, [x], [out]| cube::activate(client, size, activation, x, out))
    }
}
