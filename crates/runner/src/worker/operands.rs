//! Task, inputs and reference outputs shared by the cases of an assignment.

use calorimeter_case::{Case, CaseId, Device};
use calorimeter_recipes::{RecipeError, Treatment, Variant};
use calorimeter_timing::{MockClock, Script};
use calorimeter_zoo::foreign::Foreign;
use calorimeter_zoo::{Inputs, Look, Reference, Subject, Task, ZooError};
use std::collections::HashSet;

/// Kind of input data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Inputs of the gate, designed to expose wrong scales.
    Gate,
    /// Inputs that are timed.
    Timed,
}

/// Task on a device. Its inputs and references are computed on first use.
pub struct Operands {
    pub task: Task,
    pub device: Device,
    timed: Option<Inputs>,
    gate: Option<Inputs>,
    pub(super) references: Vec<(Content, Treatment, Vec<Reference>)>,
    /// Cases that were measured and passed. A baseline among them may be measured again, if not all cases fit into
    /// memory concurrently.
    pub passed: HashSet<CaseId>,
    /// Outputs of the first foreign program, after it ran.
    pub first: Option<Vec<Reference>>,
    /// Simulated time of the mock device.
    pub mock: MockClock,
}

impl Operands {
    /// Creates the operands from the first case; all cases of the group share them. `foreign` is set for foreign
    /// programs.
    pub fn of(case: &Case, foreign: Option<Foreign>, seed: u64) -> Result<Self, ZooError> {
        let subject = match foreign {
            Some(foreign) => Subject::Foreign(foreign),
            None => case.workload.as_str().parse()?,
        };
        let task = Task::new(subject, &case.shape, case.element, case.output, seed)?;
        let (references, mock) = (Vec::new(), MockClock::new(Script::default()));
        let passed = HashSet::new();
        Ok(Self { task, device: case.device, timed: None, gate: None, references, passed, first: None, mock })
    }

    /// True if `others` belong to an equal task on an equal device.
    pub fn is_for(&self, others: &Self) -> bool {
        (&self.task, self.device) == (&others.task, others.device)
    }

    /// Inputs that are timed.
    pub fn inputs(&mut self) -> &Inputs {
        self.timed.get_or_insert_with(|| self.task.inputs())
    }

    pub fn inputs_of(&mut self, content: Content) -> &Inputs {
        match content {
            Content::Timed => self.inputs(),
            Content::Gate => self.gate.get_or_insert_with(|| self.task.gate_inputs()),
        }
    }

    /// Reference outputs for a treatment and kind of inputs.
    pub fn references(&mut self, content: Content, treatment: &Treatment) -> Result<&[Reference], ZooError> {
        let at = self.referred(content, treatment)?;
        Ok(&self.references[at].2)
    }

    /// Index of the reference outputs for a treatment and kind of inputs; computes them on first use.
    fn referred(&mut self, content: Content, treatment: &Treatment) -> Result<usize, ZooError> {
        let same = |known: &(Content, Treatment, Vec<Reference>)| known.0 == content && known.1 == *treatment;
        if let Some(at) = self.references.iter().position(same) {
            return Ok(at);
        }
        let task = self.task.clone();
        let made = task.references(self.inputs_of(content), treatment)?;
        self.references.push((content, *treatment, made));
        Ok(self.references.len() - 1)
    }

    /// Queries that reduce the outputs to a digest sufficient for all checks. Empty if whole outputs are required: for
    /// foreign programs, or if accuracy samples other positions.
    pub fn looks(&mut self, content: Content, treatment: &Treatment) -> Result<Vec<Look<'_>>, ZooError> {
        if matches!(self.task, Task::Foreign(_)) {
            return Ok(Vec::new());
        }
        let own = self.referred(content, treatment)?;
        let yardstick = match content {
            Content::Gate => own,
            Content::Timed => self.referred(content, &Treatment::none(self.task.dtype()))?,
        };
        let (references, yardstick) = (&self.references[own].2, self.references[yardstick].2.first());
        let same =
            yardstick.map(|reference| &reference.sample) == references.first().map(|reference| &reference.sample);
        Ok(if same { references.iter().map(Reference::look).collect() } else { Vec::new() })
    }

    /// Reference for the accuracy of a case, if any: the unquantized model in double precision, or the output of the
    /// first foreign program.
    pub fn yardstick(&mut self, case: &Case) -> Result<Option<&Reference>, ZooError> {
        if let Task::Foreign(problem) = &self.task {
            let is_first = problem.foreign.first() == Some(case.implementation);
            return Ok(self.first.as_ref().filter(|_| !is_first).and_then(|references| references.first()));
        }
        let plain = Treatment::none(self.task.dtype());
        Ok(self.references(Content::Timed, &plain)?.first())
    }

    /// Quantization of a case. The plan has already verified that it is supported.
    pub fn treatment(&self, case: &Case) -> Result<Treatment, ZooError> {
        self.task.treatment(variant(case)?)
    }
}

fn variant(case: &Case) -> Result<Variant, RecipeError> {
    Ok(Variant {
        recipe: case.recipe.as_str().parse()?,
        sparsity: case.sparsity.map(|sparsity| sparsity.as_str().parse()).transpose()?,
    })
}
