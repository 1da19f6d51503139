//! `rms_norm`: y = x / √(mean(x²) + epsilon) * gain per row.
//!
//! x and y are `[batch * sequence, dimension]`, gain is `[1, dimension]`. Traffic: x read once, y written once, gain
//! read once.

mod burn;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cube;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::host::rowwise::HostRowwise;
use crate::normalize;
use crate::operators::sequences::{AXES, element_count, f32_copies_bytes, row_input, row_output};
use crate::registry::table::Zoo;
use crate::{Cost, Fill, Operand, Operation, OutputSlot, Signature, Spec, Suite};
use calorimeter_kernels::host::RowwiseOperator;

/// Operator `rms_norm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RmsNorm;

/// Registers `rms_norm` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    let host = HostRowwise(RowwiseOperator::RmsNorm { epsilon: normalize::EPSILON as f32 });
    zoo.operators([RmsNorm]).burn().cube().native().host(host);
}

impl Signature for RmsNorm {
    fn name(&self) -> &'static str {
        "rms_norm"
    }

    fn description(&self) -> &'static str {
        "RMS normalization of rows with gain"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let gain = Operand::normal(1, spec.axis("dimension"), spec.element).with_fill(Fill::Uniform(0.5, 1.5));
        vec![row_input(spec).with_fill(Fill::NormalWithMeans), gain]
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        vec![row_output(spec)]
    }
}

impl Cost for RmsNorm {
    // Square and sum; scale and gain: four per element.
    fn flops(&self, spec: &Spec) -> u64 {
        4 * element_count(spec)
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        f32_copies_bytes(spec, 2)
    }
}

impl Operation for RmsNorm {
    fn suite(&self) -> Suite {
        Suite::Ops
    }
}
