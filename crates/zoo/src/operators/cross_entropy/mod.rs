//! Cross-entropy of logits with classes given by their numbers.

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

/// `cross_entropy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CrossEntropy;

/// Inputs are made as f32, which holds whole numbers up to here.
const CLASSES: u64 = 1 << 24;

/// Registers it with the ways to run it.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([CrossEntropy]).burn().native().host(ByRows(Rowwise::CrossEntropy));
}

impl Signature for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross_entropy"
    }

    fn about(&self) -> &'static str {
        "the mean cross-entropy of rows of logits with the numbers of their classes, in f32"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        let classes = spec.axis("dimension");
        // With one class the loss is zero whatever the logits are, and nothing could be found wrong.
        if !(2..=CLASSES).contains(&classes) {
            return Err(ZooError::Shape(format!(
                "cross_entropy: dimension is {classes}; it is the number of classes, from 2 to {CLASSES}"
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
    // Maximum, difference, exp, sum: four for each number; logarithm, difference, sum for each row; and the mean.
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

    // Rows alone: a class is the number of a column.
    fn moves(&self, spec: &Spec) -> Moves {
        Moves::new(size(spec).0, &[Along::Rows, Along::Rows], &[])
    }
}
