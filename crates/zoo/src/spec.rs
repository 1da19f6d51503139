//! Size and element types of an operator.

use calorimeter_recipes::{Dtype, Element, TrainingRecipe};
use calorimeter_shapes::Axes;
use serde::{Deserialize, Serialize};

/// Operator with its shape, dtype and seed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Spec {
    /// Axes by the names that the operator declares.
    pub axes: Axes,
    /// Element type of the inputs.
    pub element: Element,
    /// Element type of the outputs, if the user chooses it instead of the operator.
    pub output: Option<Element>,
    /// Training recipe of a layer; `None` trains in the dtype of the inputs.
    pub training: Option<TrainingRecipe>,
}

impl Spec {
    /// Size of an axis. [`Operator::check_axes`](crate::Operator::check_axes) ensures that all axes exist; a missing
    /// one is 1.
    pub fn axis(&self, name: &str) -> u64 {
        self.axes.get(name).unwrap_or(1)
    }

    /// Float dtype of the inputs; f32 if they are not floats, which operators that require floats reject.
    pub fn dtype(&self) -> Dtype {
        match self.element {
            Element::Float(dtype) => dtype,
            _ => Dtype::F32,
        }
    }
}
