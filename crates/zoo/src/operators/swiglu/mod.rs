//! `swiglu`: y = silu(gate) * up, the gated activation of a transformer MLP.
//!
//! All matrices are `[batch * sequence, dimension]`. Traffic of the fused kernel: two reads and one write per element,
//! instead of three reads and two writes.

mod burn;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cube;
#[cfg(feature = "cuda")]
mod native;
mod reference;

use crate::host::rows::ByRows;
use crate::operators::sequences::{AXES, copies, count, input, stored, whole};
use crate::registry::table::Zoo;
use crate::{Cost, Fill, FusionModel, Operand, Operation, Signature, Slot, Spec, Suite};
use calorimeter_kernels::host::Rowwise;

/// Operator `swiglu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Swiglu;

/// Registers `swiglu` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([Swiglu]).burn().cube().native().host(ByRows(Rowwise::SiluMul));
}

impl Signature for Swiglu {
    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn about(&self) -> &'static str {
        "gated activation silu(gate) * up"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        vec![input(spec).filled(Fill::Offset), input(spec)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        vec![whole(spec)]
    }
}

impl Cost for Swiglu {
    // Negate, exp, add, divide and multiply: five per element.
    fn flops(&self, spec: &Spec) -> u64 {
        5 * count(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        copies(spec, 3)
    }

    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        Some(FusionModel {
            operators: vec!["silu".into(), "multiply".into()],
            unfused_bytes: 5 * stored(spec),
            fused_bytes: self.bytes(spec),
        })
    }
}

impl Operation for Swiglu {
    fn suite(&self) -> Suite {
        Suite::Ops
    }
}
