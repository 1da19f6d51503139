//! `linear_bias` and `linear_bias_<activation>`: y = act(x Wᵀ + bias).
//!
//! x is `[m, k]`, W is `[n, k]`, bias is `[1, n]`, y is `[m, n]`.

mod burn;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::operators::matmul::{set_rotation, size, weight};
use crate::operators::presets::{LINEAR_SHAPES, Preset};
use crate::operators::traffic;
use crate::registry::table::Zoo;
use crate::{
    Activation, Cost, Fill, FusionModel, Operand, Operation, OutputSlot, RotationAxis, SetRotation, Signature, Spec,
    Suite,
};
use calorimeter_shapes::Axes;

/// Activation behind the bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LinearBias {
    /// No activation.
    Plain,
    /// ReLU.
    Relu,
    /// GELU with the error function.
    Gelu,
    /// SiLU.
    Silu,
}

/// Operations of SiLU per element: negation, exponential, addition, division.
pub(super) const SILU_FLOPS: u64 = 4;

impl LinearBias {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Relu, Self::Gelu, Self::Silu];

    fn activation(self) -> Option<Activation> {
        match self {
            Self::Plain => None,
            Self::Relu => Some(Activation::Relu),
            Self::Gelu => Some(Activation::Gelu),
            Self::Silu => Some(Activation::Silu),
        }
    }
}

/// Registers the linear layers with their implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators(LinearBias::ALL).burn().native();
}

impl Signature for LinearBias {
    fn name(&self) -> &'static str {
        match self {
            Self::Plain => "linear_bias",
            Self::Relu => "linear_bias_relu",
            Self::Gelu => "linear_bias_gelu",
            Self::Silu => "linear_bias_silu",
        }
    }

    fn description(&self) -> &'static str {
        "linear layer with bias and optional activation, weights [n, k]"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "k", "n"]
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, k, n) = size(spec);
        let bias = Operand::normal(1, n, spec.element).with_fill(Fill::NormalUnscaled);
        vec![Operand::normal(m, k, spec.element), weight(n, k, k, spec), bias]
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        let (m, _, n) = size(spec);
        vec![OutputSlot::new(m, n, spec.element)]
    }
}

impl Cost for LinearBias {
    // Multiply-adds, the bias, and the activation. GELU: scale, erf, add, multiply, halve.
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        let per_output = match self {
            Self::Plain => 0,
            Self::Relu => 1,
            Self::Gelu => 5,
            Self::Silu => SILU_FLOPS,
        };
        m * n * (2 * k + 1 + per_output)
    }

    // The matmul output; with an activation also the biased sum and one intermediate of burn's activation.
    fn intermediate(&self, spec: &Spec) -> u64 {
        let (m, _, n) = size(spec);
        let tensors = if *self == Self::Plain { 1 } else { 3 };
        tensors * m * n * traffic::element_bytes(spec)
    }

    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        let (m, k, n) = size(spec);
        let mut kernels = vec![("matmul", m * k + n * k + m * n), ("add", 2 * m * n + n)];
        kernels.extend(self.activation().map(|activation| (activation.name(), 2 * m * n)));
        Some(traffic::fusion_model(spec, &kernels, self.bytes(spec)))
    }

    fn matmuls(&self) -> u32 {
        1
    }
}

impl Operation for LinearBias {
    fn suite(&self) -> Suite {
        Suite::Fusion
    }

    fn set_rotation(&self, spec: &Spec) -> SetRotation {
        set_rotation(spec, &[RotationAxis::Rows], &[RotationAxis::Fixed, RotationAxis::Rows, RotationAxis::Columns])
    }

    fn sizes(&self, preset: Preset) -> Vec<Axes> {
        preset.first_shapes(self.axes(), LINEAR_SHAPES)
    }
}
