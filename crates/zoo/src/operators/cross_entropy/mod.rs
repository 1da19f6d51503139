//! `cross_entropy`: mean over rows of `log Σ exp(logits) - logits[target]`.
//!
//! Logits are `[batch * sequence, dimension]` with one class per column, targets are i32 class indices, the loss is one
//! f32.

mod burn;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::host::rowwise::HostRowwise;
use crate::operation::require_floats;
use crate::operators::loss;
use crate::operators::sequences::{AXES, element_count, f32_copies_bytes, row_input, size};
use crate::registry::table::Zoo;
use crate::{Cost, Fill, Operand, Operation, OutputSlot, RotationAxis, SetRotation, Signature, Spec, Suite, ZooError};
use calorimeter_kernels::host::RowwiseOperator;
use calorimeter_recipes::Element;

/// Operator `cross_entropy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CrossEntropy;

/// Maximum number of classes: targets are generated as f32, which holds integers up to 2^24 exactly.
const MAX_CLASSES: u64 = 1 << 24;

/// Registers `cross_entropy` with its implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([CrossEntropy]).burn().native().host(HostRowwise(RowwiseOperator::CrossEntropy));
}

impl Signature for CrossEntropy {
    fn name(&self) -> &'static str {
        "cross_entropy"
    }

    fn description(&self) -> &'static str {
        "mean cross-entropy of rows of logits with class indices, in f32"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        let classes = spec.axis("dimension");
        // With a single class the loss is zero for any logits, so that no error would be detected.
        if !(2..=MAX_CLASSES).contains(&classes) {
            return Err(ZooError::Shape(format!(
                "cross_entropy: dimension is {classes}; expected 2 to {MAX_CLASSES} classes"
            )));
        }
        require_floats(self.name(), spec)
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (rows, classes) = size(spec);
        let targets = Operand::normal(rows, 1, Element::Signed(32)).with_fill(Fill::IntegersBelow(classes as u32));
        vec![row_input(spec).with_fill(Fill::NormalWithLargeMeans), targets]
    }

    fn outputs(&self, _: &Spec) -> Vec<OutputSlot> {
        vec![loss::scalar_output()]
    }
}

impl Cost for CrossEntropy {
    // Maximum, difference, exp and sum per element; logarithm, difference and sum per row; one division for the mean.
    fn flops(&self, spec: &Spec) -> u64 {
        let (rows, _) = size(spec);
        4 * element_count(spec) + 3 * rows + 1
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        f32_copies_bytes(spec, 2)
    }
}

impl Operation for CrossEntropy {
    fn suite(&self) -> Suite {
        Suite::Ops
    }

    // Only rows rotate: targets are column indices.
    fn set_rotation(&self, spec: &Spec) -> SetRotation {
        SetRotation::new(size(spec).0, &[RotationAxis::Rows, RotationAxis::Rows], &[])
    }
}
