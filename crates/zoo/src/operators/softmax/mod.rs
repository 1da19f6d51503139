//! `softmax`: y = exp(x - max(x)) / Σ exp(x - max(x)) per row.
//!
//! x and y are `[batch * sequence, dimension]`. Traffic: x read once, y written once.

mod burn;
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

/// Operator `softmax`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Softmax;

/// Registers `softmax` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([Softmax]).burn().cube().native().host(ByRows(Rowwise::Softmax));
}

impl Signature for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn about(&self) -> &'static str {
        "row-wise softmax"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        vec![input(spec).filled(Fill::Far)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![whole(spec)]
    }
}

impl Cost for Softmax {
    // Maximum, difference, exp, sum and quotient: five per element.
    fn flops(&self, spec: &Spec) -> u64 {
        5 * count(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        copies(spec, 2)
    }
}

impl Operation for Softmax {
    fn suite(&self) -> Suite {
        Suite::Ops
    }
}
