//! `swiglu_mlp`: the gated MLP of large language models, y = (silu(x Wgᵀ) * (x Wuᵀ)) Wdᵀ.
//!
//! x and y are `[m, k]`, the hidden layer is `[m, n]`. Gate weights Wg and up weights Wu are `[n, k]`, down weights Wd
//! are `[k, n]`.

mod burn;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::operators::linear_bias::SILU_FLOPS;
use crate::operators::matmul::{size, weight};
use crate::operators::presets::{LINEAR_SHAPES, Preset};
use crate::operators::traffic;
use crate::registry::table::Zoo;
use crate::{Cost, FusionModel, Operand, Operation, OutputSlot, RotationAxis, SetRotation, Signature, Spec, Suite};
use calorimeter_shapes::Axes;

/// Operator `swiglu_mlp` for m rows of width k with a hidden layer of width n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SwigluMlp;

/// Registers `swiglu_mlp` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([SwigluMlp]).burn().native();
}

impl Signature for SwigluMlp {
    fn name(&self) -> &'static str {
        "swiglu_mlp"
    }

    fn description(&self) -> &'static str {
        "gated MLP: width k, hidden size n, gate and up weights [n, k], down weights [k, n]"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "k", "n"]
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, k, n) = size(spec);
        let wide = weight(n, k, k, spec);
        vec![Operand::normal(m, k, spec.element), wide, wide, weight(k, n, n, spec)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        let (m, k, _) = size(spec);
        vec![OutputSlot::new(m, k, spec.element)]
    }
}

impl Cost for SwigluMlp {
    fn matmuls(&self) -> u32 {
        2
    }

    // Three matmuls, a SiLU and the multiplication with up.
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        6 * m * k * n + (SILU_FLOPS + 1) * m * n
    }

    // Gate, up, and one intermediate of the SiLU.
    fn intermediate(&self, spec: &Spec) -> u64 {
        let (m, _, n) = size(spec);
        3 * m * n * traffic::element_bytes(spec)
    }

    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        let (m, k, n) = size(spec);
        let product = m * k + n * k + m * n;
        let kernels =
            [("matmul", product), ("matmul", product), ("silu", 2 * m * n), ("mul", 3 * m * n), ("matmul", product)];
        Some(traffic::fusion_model(spec, &kernels, self.bytes(spec)))
    }
}

impl Operation for SwigluMlp {
    fn suite(&self) -> Suite {
        Suite::Fusion
    }

    // A single row rotates along its k columns, with the rows of the down weights.
    fn set_rotation(&self, spec: &Spec) -> SetRotation {
        match size(spec) {
            (1, k, _) => SetRotation::new(
                k,
                &[RotationAxis::Fixed, RotationAxis::Fixed, RotationAxis::Fixed, RotationAxis::Rows],
                &[RotationAxis::Columns],
            ),
            (m, ..) => SetRotation::new(m, &[RotationAxis::Rows], &[RotationAxis::Rows]),
        }
    }

    fn sizes(&self, preset: Preset) -> Vec<Axes> {
        preset.first_shapes(self.axes(), LINEAR_SHAPES)
    }
}
