//! `ln_linear`: y = (layer_norm(x) * gain + bias) Wᵀ.
//!
//! x is `[m, k]`, gain and bias are `[1, k]`, W is `[n, k]`, y is `[m, n]`.

mod burn;
#[cfg(feature = "cuda")]
mod native;
mod reference;

use crate::operators::layer_norm::LayerNorm;
use crate::operators::presets::{LINEAR, Preset};
use crate::operators::product::{moves, size, weight};
use crate::operators::traffic;
use crate::registry::table::Zoo;
use crate::{Along, Cost, FusionModel, Moves, Operand, Operation, Signature, Slot, Spec, Suite};
use calorimeter_shapes::Axes;

/// Operator `ln_linear`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LnLinear;

/// Spec of the layer normalization: m rows of k elements.
fn first(spec: &Spec) -> Spec {
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

    fn about(&self) -> &'static str {
        "layer normalization with gain and bias, then a linear layer without bias, weights [n, k]"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "k", "n"]
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (_, k, n) = size(spec);
        let mut inputs = LayerNorm.inputs(&first(spec));
        inputs.push(weight(n, k, k, spec));
        inputs
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (m, _, n) = size(spec);
        vec![Slot::new(m, n, spec.element)]
    }
}

impl Cost for LnLinear {
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        LayerNorm.flops(&first(spec)) + 2 * m * k * n
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let (m, k, _) = size(spec);
        LayerNorm.intermediate(&first(spec)) + m * k * traffic::number_bytes(spec)
    }

    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        let (m, k, n) = size(spec);
        let kernels = [("layer_norm", 2 * m * k + 2 * k), ("matmul", m * k + n * k + m * n)];
        Some(traffic::model(spec, &kernels, self.bytes(spec)))
    }

    fn products(&self) -> u32 {
        1
    }
}

impl Operation for LnLinear {
    fn suite(&self) -> Suite {
        Suite::Fusion
    }

    fn moves(&self, spec: &Spec) -> Moves {
        moves(spec, &[Along::Rows], &[Along::Nothing, Along::Nothing, Along::Nothing, Along::Rows])
    }

    fn sizes(&self, preset: Preset) -> Vec<Axes> {
        preset.first(self.axes(), LINEAR)
    }
}
