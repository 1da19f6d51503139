//! `ln_gelu`: y = gelu(layer_norm(x) * gain + bias), GELU with the error function.
//!
//! x and y are `[batch * sequence, dimension]`. The fused kernel saves one write and one read of the normalized rows.

mod burn;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cube;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::host::rowwise::HostRowwise;
use crate::operators::layer_norm::LayerNorm;
use crate::operators::sequences::{AXES, element_count, matrix_bytes};
use crate::registry::table::Zoo;
use crate::{Cost, FusionModel, Operand, Operation, OutputSlot, Signature, Spec, Suite};
use calorimeter_kernels::host::RowwiseOperator;

/// Operator `ln_gelu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LnGelu;

/// Registers `ln_gelu` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([LnGelu]).burn().cube().native().host(HostRowwise(RowwiseOperator::LayerNormGelu));
}

impl Signature for LnGelu {
    fn name(&self) -> &'static str {
        "ln_gelu"
    }

    fn description(&self) -> &'static str {
        "layer normalization with gain and bias, then GELU"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        LayerNorm.inputs(spec)
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        LayerNorm.outputs(spec)
    }
}

impl Cost for LnGelu {
    // A layer normalization, then scale, erf, add, multiply and halve per element.
    fn flops(&self, spec: &Spec) -> u64 {
        LayerNorm.flops(spec) + 5 * element_count(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        LayerNorm.intermediate(spec)
    }

    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        Some(FusionModel {
            operators: vec!["layer_norm".into(), "gelu".into()],
            unfused_bytes: LayerNorm.bytes(spec) + 2 * matrix_bytes(spec),
            fused_bytes: self.bytes(spec),
        })
    }
}

impl Operation for LnGelu {
    fn suite(&self) -> Suite {
        Suite::Ops
    }
}
