//! `layer_norm`: y = (x - mean) / √(variance + epsilon) * gain + bias per row.
//!
//! x and y are `[batch * sequence, dimension]`; gain and bias are `[1, dimension]`. Traffic: x read once, y written
//! once, parameters read once.

pub(super) mod burn;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cube;
#[cfg(feature = "native")]
mod native;
pub(super) mod reference;

use crate::host::rowwise::HostRowwise;
use crate::operators::sequences::{AXES, element_count, f32_copies_bytes, row_input, row_output};
use crate::registry::table::Zoo;
use crate::{Cost, Fill, Operand, Operation, OutputSlot, Signature, Spec, Suite};
use calorimeter_kernels::host::RowwiseOperator;

/// Operator `layer_norm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayerNorm;

/// Gain and bias, one element per column each.
pub(super) fn gain_and_bias(spec: &Spec) -> [Operand; 2] {
    let row = Operand::normal(1, spec.axis("dimension"), spec.element);
    [row.with_fill(Fill::Uniform(0.5, 1.5)), row]
}

/// Registers `layer_norm` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([LayerNorm]).burn().cube().native().host(HostRowwise(RowwiseOperator::LayerNorm));
}

impl Signature for LayerNorm {
    fn name(&self) -> &'static str {
        "layer_norm"
    }

    fn description(&self) -> &'static str {
        "layer normalization of rows with gain and bias"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let [gain, bias] = gain_and_bias(spec);
        vec![row_input(spec).with_fill(Fill::NormalWithMeans), gain, bias]
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        vec![row_output(spec)]
    }
}

impl Cost for LayerNorm {
    // Sum; difference; square and sum; scale, gain and bias: seven per element.
    fn flops(&self, spec: &Spec) -> u64 {
        7 * element_count(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        f32_copies_bytes(spec, 3)
    }
}

impl Operation for LayerNorm {
    fn suite(&self) -> Suite {
        Suite::Ops
    }
}
