//! What the cases of an assignment compute, with the inputs and references that they share.

use super::protocol::Assignment;
use calorimeter_case::{Case, Device};
use calorimeter_recipes::{RecipeError, Treatment, Variant};
use calorimeter_timing::{MockClock, Script};
use calorimeter_zoo::{Inputs, Reference, Task, ZooError};

/// A task on a device; its tensors and references are made when they are first asked for.
pub struct Operands {
    pub task: Task,
    pub device: Device,
    inputs: Option<Inputs>,
    references: Vec<(Treatment, Vec<Reference>)>,
    /// The time that passes on the mock device.
    pub mock: MockClock,
}

impl Operands {
    /// Those of the first case, which all others share.
    pub fn of(case: &Case, assignment: &Assignment) -> Result<Self, ZooError> {
        let task = Task::new(case.workload.as_str().parse()?, &case.shape, case.element, case.output, assignment.seed)?;
        let mock = MockClock::new(Script::default());
        Ok(Self { task, device: case.device, inputs: None, references: Vec::new(), mock })
    }

    pub fn inputs(&mut self) -> &Inputs {
        self.inputs.get_or_insert_with(|| self.task.inputs())
    }

    pub fn references(&mut self, treatment: &Treatment) -> Result<&[Reference], ZooError> {
        let at = match self.references.iter().position(|(known, _)| known == treatment) {
            Some(at) => at,
            None => {
                let inputs = self.inputs.get_or_insert_with(|| self.task.inputs());
                self.references.push((*treatment, self.task.references(inputs, treatment)?));
                self.references.len() - 1
            }
        };
        Ok(&self.references[at].1)
    }

    /// What a case does to the weights.
    pub fn treatment(&self, case: &Case) -> Result<Treatment, ZooError> {
        self.task.support(variant(case)?, case.implementation, self.device)
    }
}

fn variant(case: &Case) -> Result<Variant, RecipeError> {
    Ok(Variant {
        recipe: case.recipe.as_str().parse()?,
        sparsity: case.sparsity.map(|sparsity| sparsity.as_str().parse()).transpose()?,
    })
}
