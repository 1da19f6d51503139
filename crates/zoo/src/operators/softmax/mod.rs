//! `softmax`: y = exp(x - max(x)) / Σ exp(x - max(x)) per row.
//!
//! x and y are `[batch * sequence, dimension]`. Traffic: x read once, y written once.

mod burn;
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

/// Operator `softmax`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Softmax;

/// Registers `softmax` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([Softmax]).burn().cube().native().host(HostRowwise(RowwiseOperator::Softmax));
}

impl Signature for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn description(&self) -> &'static str {
        "row-wise softmax"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        vec![row_input(spec).with_fill(Fill::NormalWithLargeMeans)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        vec![row_output(spec)]
    }
}

impl Cost for Softmax {
    // Maximum, difference, exp, sum and quotient: five per element.
    fn flops(&self, spec: &Spec) -> u64 {
        5 * element_count(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        f32_copies_bytes(spec, 2)
    }
}

impl Operation for Softmax {
    fn suite(&self) -> Suite {
        Suite::Ops
    }
}
