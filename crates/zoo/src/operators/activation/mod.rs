//! Activations, element by element.

mod burn;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cube;
#[cfg(feature = "cuda")]
mod native;
mod reference;

use crate::host::rows::ByRows;
use crate::operators::sequences::{AXES, copies, count, input, whole};
use crate::registry::table::Zoo;
use crate::{Cost, Fill, Operand, Operation, Signature, Slot, Spec, Suite};
use calorimeter_kernels::host::Rowwise;

/// An activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ElementwiseActivation {
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

impl ElementwiseActivation {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Gelu, Self::GeluTanh, Self::Silu];
}

/// Registers them with the ways to run them.
pub(super) fn register(zoo: &Zoo) {
    for (activation, kernel) in [
        (ElementwiseActivation::Gelu, Rowwise::Gelu),
        (ElementwiseActivation::GeluTanh, Rowwise::GeluTanh),
        (ElementwiseActivation::Silu, Rowwise::Silu),
    ] {
        zoo.operators([activation]).burn().cube().native().host(ByRows(kernel));
    }
}

impl Signature for ElementwiseActivation {
    fn name(&self) -> &'static str {
        match self {
            Self::Gelu => "gelu",
            Self::GeluTanh => "gelu_tanh",
            Self::Silu => "silu",
        }
    }

    fn about(&self) -> &'static str {
        "an activation, element by element"
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
}

impl Cost for ElementwiseActivation {
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
}

impl Operation for ElementwiseActivation {
    fn suite(&self) -> Suite {
        Suite::Ops
    }
}
