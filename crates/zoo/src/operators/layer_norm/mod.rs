//! `layer_norm`: y = (x - mean) / √(variance + epsilon) * gain + bias per row.
//!
//! x and y are `[batch * sequence, dimension]`; gain and bias are `[1, dimension]`. Traffic: x read once, y written
//! once, parameters read once.

pub(super) mod burn;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cube;
#[cfg(feature = "cuda")]
mod native;
pub(super) mod reference;

use crate::host::rows::ByRows;
use crate::operators::sequences::{AXES, copies, count, input, whole};
use crate::registry::table::Zoo;
use crate::{Cost, Fill, Operand, Operation, Signature, Slot, Spec, Suite};
use calorimeter_kernels::host::Rowwise;

/// Operator `layer_norm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayerNorm;

/// Gain and bias, one element per column each.
pub(super) fn gain_and_bias(spec: &Spec) -> [Operand; 2] {
    let row = Operand::normal(1, spec.axis("dimension"), spec.element);
    [row.filled(Fill::Uniform(0.5, 1.5)), row]
}

/// Registers `layer_norm` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([LayerNorm]).burn().cube().native().host(ByRows(Rowwise::LayerNorm));
}

impl Signature for LayerNorm {
    fn name(&self) -> &'static str {
        "layer_norm"
    }

    fn about(&self) -> &'static str {
        "layer normalization of rows with gain and bias"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let [gain, bias] = gain_and_bias(spec);
        vec![input(spec).filled(Fill::Offset), gain, bias]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![whole(spec)]
    }
}

impl Cost for LayerNorm {
    // Sum; difference; square and sum; scale, gain and bias: seven per element.
    fn flops(&self, spec: &Spec) -> u64 {
        7 * count(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        copies(spec, 3)
    }
}

impl Operation for LayerNorm {
    fn suite(&self) -> Suite {
        Suite::Ops
    }
}
