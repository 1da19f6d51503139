//! `swiglu`: y = silu(gate) * up, the gated activation of a transformer MLP.
//!
//! All matrices are `[batch * sequence, dimension]`. Traffic of the fused kernel: two reads and one write per element,
//! instead of three reads and two writes.

mod burn;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cube;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::host::rowwise::HostRowwise;
use crate::operators::sequences::{AXES, element_count, f32_copies_bytes, matrix_bytes, row_input, row_output};
use crate::registry::table::Zoo;
use crate::{Cost, Fill, FusionModel, Operand, Operation, OutputSlot, Signature, Spec, Suite};
use calorimeter_kernels::host::RowwiseOperator;

/// Operator `swiglu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Swiglu;

/// Registers `swiglu` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([Swiglu]).burn().cube().native().host(HostRowwise(RowwiseOperator::SiluMul));
}

impl Signature for Swiglu {
    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn description(&self) -> &'static str {
        "gated activation silu(gate) * up"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        vec![row_input(spec).with_fill(Fill::NormalWithMeans), row_input(spec)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        vec![row_output(spec)]
    }
}

impl Cost for Swiglu {
    // Negate, exp, add, divide and multiply: five per element.
    fn flops(&self, spec: &Spec) -> u64 {
        5 * element_count(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        f32_copies_bytes(spec, 3)
    }

    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        Some(FusionModel {
            operators: vec!["silu".into(), "multiply".into()],
            unfused_bytes: 5 * matrix_bytes(spec),
            fused_bytes: self.bytes(spec),
        })
    }
}

impl Operation for Swiglu {
    fn suite(&self) -> Suite {
        Suite::Ops
    }
}
