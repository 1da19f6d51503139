//! `ln_linear`: y = (layer_norm(x) * gain + bias) Wᵀ.
//!
//! x is `[m, k]`, gain and bias are `[1, k]`, W is `[n, k]`, y is `[m, n]`.

mod burn;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::operators::layer_norm::LayerNorm;
use crate::operators::matmul::{set_rotation, size, weight};
use crate::operators::presets::{LINEAR_SHAPES, Preset};
use crate::operators::traffic;
use crate::registry::table::Zoo;
use crate::{Cost, FusionModel, Operand, Operation, OutputSlot, RotationAxis, SetRotation, Signature, Spec, Suite};
use calorimeter_shapes::Axes;

/// Operator `ln_linear`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LnLinear;

/// Spec of the layer normalization: m rows of k elements.
fn norm_spec(spec: &Spec) -> Spec {
    let (m, k, _) = size(spec);
    let axes = Axes::new([("batch", 1), ("sequence", m), ("dimension", k)]).expect("axis names are distinct");
    Spec { axes, ..spec.clone() }
}

/// Registers `ln_linear` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([LnLinear]).burn().native();
}

impl Signature for LnLinear {
    fn name(&self) -> &'static str {
        "ln_linear"
    }

    fn description(&self) -> &'static str {
        "layer normalization with gain and bias, then a linear layer without bias, weights [n, k]"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "k", "n"]
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (_, k, n) = size(spec);
        let mut inputs = LayerNorm.inputs(&norm_spec(spec));
        inputs.push(weight(n, k, k, spec));
        inputs
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        let (m, _, n) = size(spec);
        vec![OutputSlot::new(m, n, spec.element)]
    }
}

impl Cost for LnLinear {
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        LayerNorm.flops(&norm_spec(spec)) + 2 * m * k * n
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let (m, k, _) = size(spec);
        LayerNorm.intermediate(&norm_spec(spec)) + m * k * traffic::element_bytes(spec)
    }

    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        let (m, k, n) = size(spec);
        let kernels = [("layer_norm", 2 * m * k + 2 * k), ("matmul", m * k + n * k + m * n)];
        Some(traffic::fusion_model(spec, &kernels, self.bytes(spec)))
    }

    fn matmuls(&self) -> u32 {
        1
    }
}

impl Operation for LnLinear {
    fn suite(&self) -> Suite {
        Suite::Fusion
    }

    fn set_rotation(&self, spec: &Spec) -> SetRotation {
        set_rotation(
            spec,
            &[RotationAxis::Rows],
            &[RotationAxis::Fixed, RotationAxis::Fixed, RotationAxis::Fixed, RotationAxis::Rows],
        )
    }

    fn sizes(&self, preset: Preset) -> Vec<Axes> {
        preset.first_shapes(self.axes(), LINEAR_SHAPES)
    }
}
