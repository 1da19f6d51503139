//! At what size an operator is run.

use calorimeter_recipes::{Dtype, Element, TrainingRecipe};
use calorimeter_shapes::Axes;

/// At what size an operator is run, and in which types of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spec {
    /// Its axes, by the names that the operator declares.
    pub axes: Axes,
    /// What its inputs are stored as.
    pub element: Element,
    /// What its outputs are stored as, where that is a choice and not the operator's own.
    pub output: Option<Element>,
    /// How a layer is trained, if not in the type of its inputs.
    pub training: Option<TrainingRecipe>,
}

impl Spec {
    /// The size of an axis; a problem is checked to have every one before anything else is asked of it.
    pub fn axis(&self, name: &str) -> u64 {
        self.axes.get(name).unwrap_or(1)
    }

    /// The float type of its inputs; operators that take floats alone check that.
    pub fn dtype(&self) -> Dtype {
        match self.element {
            Element::Float(dtype) => dtype,
            _ => Dtype::F32,
        }
    }
}
