//! The mean of squared differences.

mod burn;
#[cfg(feature = "cuda")]
mod native;
mod reference;

use crate::host::rows::ByRows;
use crate::operators::loss;
use crate::operators::sequences::{AXES, copies, count, input};
use crate::registry::table::Zoo;
use crate::{Cost, Fill, Operand, Operation, Signature, Slot, Spec, Suite};
use calorimeter_kernels::host::Rowwise;

/// `mse_loss`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MseLoss;

/// Registers it with the ways to run it.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([MseLoss]).burn().native().host(ByRows(Rowwise::SquaredError));
}

impl Signature for MseLoss {
    fn name(&self) -> &'static str {
        "mse_loss"
    }

    fn about(&self) -> &'static str {
        "the mean of the squared differences of two inputs, in f32"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        // With both around zero, a sum of squares would have the same mean as a squared difference.
        vec![input(spec).filled(Fill::Offset); 2]
    }

    fn outputs(&self, _: &Spec) -> Vec<Slot> {
        vec![loss::output()]
    }
}

impl Cost for MseLoss {
    // Difference, square, sum: three for each number; and the mean.
    fn flops(&self, spec: &Spec) -> u64 {
        3 * count(spec) + 1
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        copies(spec, 3)
    }
}

impl Operation for MseLoss {
    fn suite(&self) -> Suite {
        Suite::Ops
    }
}
