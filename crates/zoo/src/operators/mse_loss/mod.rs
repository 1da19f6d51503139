//! `mse_loss`: mean of (x - y)² over all elements.
//!
//! x and y are `[batch * sequence, dimension]`, the loss is one f32. Traffic: both inputs read once.

mod burn;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::host::rowwise::HostRowwise;
use crate::operators::loss;
use crate::operators::sequences::{AXES, element_count, f32_copies_bytes, row_input};
use crate::registry::table::Zoo;
use crate::{Cost, Fill, Operand, Operation, OutputSlot, Signature, Spec, Suite};
use calorimeter_kernels::host::RowwiseOperator;

/// Operator `mse_loss`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MseLoss;

/// Registers `mse_loss` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([MseLoss]).burn().native().host(HostRowwise(RowwiseOperator::SquaredError));
}

impl Signature for MseLoss {
    fn name(&self) -> &'static str {
        "mse_loss"
    }

    fn description(&self) -> &'static str {
        "mean squared error of two inputs, in f32"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        // Nonzero row means: with zero means, mean(x² + y²) would equal mean((x - y)²), and that bug would pass.
        vec![row_input(spec).with_fill(Fill::NormalWithMeans); 2]
    }

    fn outputs(&self, _: &Spec) -> Vec<OutputSlot> {
        vec![loss::scalar_output()]
    }
}

impl Cost for MseLoss {
    // Difference, square and sum per element; one division for the mean.
    fn flops(&self, spec: &Spec) -> u64 {
        3 * element_count(spec) + 1
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        f32_copies_bytes(spec, 3)
    }
}

impl Operation for MseLoss {
    fn suite(&self) -> Suite {
        Suite::Ops
    }
}
