//! `add_ln`: s = x + residual and y = layer_norm(s) * gain + bias, as in a pre-norm transformer block.
//!
//! x, residual, s and y are `[batch * sequence, dimension]`; gain and bias are `[1, dimension]`. y is computed from the
//! unrounded sum. A fused kernel reads x and the residual once and writes both outputs.

mod burn;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cube;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::host::rowwise::HostRowwise;
use crate::operators::layer_norm;
use crate::operators::layer_norm::LayerNorm;
use crate::operators::sequences::{AXES, element_count, matrix_bytes, row_input, row_output};
use crate::registry::table::Zoo;
use crate::{Cost, Fill, FusionModel, Operand, Operation, OutputSlot, Signature, Spec, Suite};
use calorimeter_kernels::host::RowwiseOperator;

/// Operator `add_ln`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AddLn;

/// Index of the output s = x + residual; output 1 is the normalized sum.
const SUM_OUTPUT: usize = 0;

/// Registers `add_ln` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([AddLn]).burn().cube().native().host(HostRowwise(RowwiseOperator::AddLayerNorm));
}

impl Signature for AddLn {
    fn name(&self) -> &'static str {
        "add_ln"
    }

    fn description(&self) -> &'static str {
        "residual addition, then layer normalization with gain and bias"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let [gain, bias] = layer_norm::gain_and_bias(spec);
        vec![row_input(spec).with_fill(Fill::NormalWithMeans), row_input(spec), gain, bias]
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        vec![row_output(spec); 2]
    }
}

impl Cost for AddLn {
    // One addition per element, then a layer normalization.
    fn flops(&self, spec: &Spec) -> u64 {
        element_count(spec) + LayerNorm.flops(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        LayerNorm.intermediate(spec)
    }

    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        Some(FusionModel {
            operators: vec!["add".into(), "layer_norm".into()],
            unfused_bytes: 3 * matrix_bytes(spec) + LayerNorm.bytes(spec),
            fused_bytes: self.bytes(spec),
        })
    }
}

impl Operation for AddLn {
    fn suite(&self) -> Suite {
        Suite::Ops
    }
}
