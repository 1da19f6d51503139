//! `cross_entropy`: mean over rows of `log Σ exp(logits) - logits[target]`.
//!
//! Logits are `[batch * sequence, dimension]` with one class per column, targets are i32 class indices, the loss is one
//! f32.

mod burn;
#[cfg(feature = "cuda")]
mod native;
mod reference;

use crate::host::rows::ByRows;
use crate::operation::floats_alone;
use crate::operators::loss;
use crate::operators::sequences::{AXES, copies, count, input, size};
use crate::registry::table::Zoo;
use crate::{Along, Cost, Fill, Moves, Operand, Operation, Signature, Slot, Spec, Suite, ZooError};
use calorimeter_kernels::host::Rowwise;
use calorimeter_recipes::Element;

/// Operator `cross_entropy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CrossEntropy;

/// Maximum number of classes: targets are generated as f32, which holds integers up to 2^24 exactly.
const CLASSES: u64 = 1 << 24;

/// Registers `cross_entropy` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([CrossEntropy]).burn().native().host(ByRows(Rowwise::CrossEntropy));
}

impl Signature for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross_entropy"
    }

    fn about(&self) -> &'static str {
        "mean cross-entropy of rows of logits with class indices, in f32"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        let classes = spec.axis("dimension");
        // With a single class the loss is zero for any logits, so that no error would be detected.
        if !(2..=CLASSES).contains(&classes) {
            return Err(ZooError::Shape(format!(
                "cross_entropy: dimension is {classes}; expected 2 to {CLASSES} classes"
            )));
        }
        floats_alone(self.name(), spec)
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (rows, classes) = size(spec);
        let targets = Operand::normal(rows, 1, Element::Signed(32)).filled(Fill::Below(classes as u32));
        vec![input(spec).filled(Fill::Far), targets]
    }

    fn outputs(&self, _: &Spec) -> Vec<Slot> {
        vec![loss::output()]
    }
}

impl Cost for CrossEntropy {
    // Maximum, difference, exp and sum per element; logarithm, difference and sum per row; one division for the mean.
    fn flops(&self, spec: &Spec) -> u64 {
        let (rows, _) = size(spec);
        4 * count(spec) + 3 * rows + 1
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        copies(spec, 2)
    }
}

impl Operation for CrossEntropy {
    fn suite(&self) -> Suite {
        Suite::Ops
    }

    // Only rows rotate: targets are column indices.
    fn moves(&self, spec: &Spec) -> Moves {
        Moves::new(size(spec).0, &[Along::Rows, Along::Rows], &[])
    }
}
