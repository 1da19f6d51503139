//! `gelu`, `gelu_tanh` and `silu`: elementwise activations of x `[batch * sequence, dimension]`.

mod burn;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cube;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::host::rowwise::HostRowwise;
use crate::operators::sequences::{AXES, element_count, f32_copies_bytes, row_input, row_output};
use crate::registry::table::Zoo;
use crate::{Cost, Fill, Operand, Operation, OutputSlot, Signature, Spec, Suite};
use calorimeter_kernels::host::RowwiseOperator;

/// Elementwise activation y = f(x).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ElementwiseActivation {
    /// x Φ(x), with Φ from the error function.
    Gelu,
    /// 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))): the tanh approximation of GELU.
    GeluTanh,
    /// x sigmoid(x).
    Silu,
}

/// √(2/π), the factor inside the tanh.
const GELU_TANH_SLOPE: f64 = std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;

const GELU_TANH_CUBIC: f64 = 0.044715;

impl ElementwiseActivation {
    /// All activations.
    pub const ALL: [Self; 3] = [Self::Gelu, Self::GeluTanh, Self::Silu];
}

/// Registers the activations with their implementations.
pub(super) fn register(zoo: &Zoo) {
    for (activation, kernel) in [
        (ElementwiseActivation::Gelu, RowwiseOperator::Gelu),
        (ElementwiseActivation::GeluTanh, RowwiseOperator::GeluTanh),
        (ElementwiseActivation::Silu, RowwiseOperator::Silu),
    ] {
        zoo.operators([activation]).burn().cube().native().host(HostRowwise(kernel));
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

    fn description(&self) -> &'static str {
        "elementwise activation"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        // Row means up to 4 cover the tails of the functions.
        vec![row_input(spec).with_fill(Fill::NormalWithMeans)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        vec![row_output(spec)]
    }
}

impl Cost for ElementwiseActivation {
    // erf, tanh and exp count as one operation each.
    fn flops(&self, spec: &Spec) -> u64 {
        let per_element = match self {
            // Scale, erf, add, multiply, halve.
            Self::Gelu => 5,
            // Three multiplications and an addition for the polynomial; scale, tanh, add, multiply, halve.
            Self::GeluTanh => 9,
            // Negate, exp, add, divide.
            Self::Silu => 4,
        };
        per_element * element_count(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        match self {
            Self::Gelu | Self::Silu => f32_copies_bytes(spec, 2),
            Self::GeluTanh => f32_copies_bytes(spec, 3),
        }
    }
}

impl Operation for ElementwiseActivation {
    fn suite(&self) -> Suite {
        Suite::Ops
    }
}
