//! What the cases of an assignment compute, with the inputs and references that they share.

use calorimeter_case::{Case, CaseId, Device};
use calorimeter_recipes::{RecipeError, Treatment, Variant};
use calorimeter_timing::{MockClock, Script};
use calorimeter_zoo::foreign::Foreign;
use calorimeter_zoo::{Inputs, Look, Reference, Subject, Task, ZooError};
use std::collections::HashSet;

/// Which data a case computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Those of the gate alone, in which a wrong scale shows.
    Gate,
    /// Those that are timed.
    Timed,
}

/// A task on a device; its tensors and references are made when they are first asked for.
pub struct Operands {
    pub task: Task,
    pub device: Device,
    timed: Option<Inputs>,
    gate: Option<Inputs>,
    pub(super) references: Vec<(Content, Treatment, Vec<Reference>)>,
    /// The cases that were measured and right. One of them is measured again as the baseline of those that do not fit beside it
    /// all together.
    pub passed: HashSet<CaseId>,
    /// What the first program of others left, once it ran.
    pub first: Option<Vec<Reference>>,
    /// The time that passes on the mock device.
    pub mock: MockClock,
}

impl Operands {
    /// Those of the first case, which all others share, and which may be the work of others.
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

    /// Whether others compute the same with the same numbers, on the same device.
    pub fn is_for(&self, others: &Self) -> bool {
        (&self.task, self.device) == (&others.task, others.device)
    }

    /// Those that are timed.
    pub fn inputs(&mut self) -> &Inputs {
        self.timed.get_or_insert_with(|| self.task.inputs())
    }

    pub fn inputs_of(&mut self, content: Content) -> &Inputs {
        match content {
            Content::Timed => self.inputs(),
            Content::Gate => self.gate.get_or_insert_with(|| self.task.gate_inputs()),
        }
    }

    /// What is right for a treatment of either data.
    pub fn references(&mut self, content: Content, treatment: &Treatment) -> Result<&[Reference], ZooError> {
        let at = self.referred(content, treatment)?;
        Ok(&self.references[at].2)
    }

    /// Where what is right for a treatment of either data is kept.
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

    /// What is looked at of outputs, all that they are told apart by. Nothing where they have to be there whole: what is right is
    /// what the first of several programs leaves, or accuracy is told by other places.
    pub fn looks(&mut self, content: Content, treatment: &Treatment) -> Result<Vec<Look<'_>>, ZooError> {
        if matches!(self.task, Task::Foreign(_)) {
            return Ok(Vec::new());
        }
        let here = self.referred(content, treatment)?;
        let yardstick = match content {
            Content::Gate => here,
            Content::Timed => self.referred(content, &Treatment::none(self.task.dtype()))?,
        };
        let (references, yardstick) = (&self.references[here].2, self.references[yardstick].2.first());
        let same =
            yardstick.map(|reference| &reference.sample) == references.first().map(|reference| &reference.sample);
        Ok(if same { references.iter().map(Reference::look).collect() } else { Vec::new() })
    }

    /// What the accuracy of a case is told against, if anything: the unquantized model in double precision, or what the
    /// first of several programs left.
    pub fn yardstick(&mut self, case: &Case) -> Result<Option<&Reference>, ZooError> {
        if let Task::Foreign(problem) = &self.task {
            let is_first = problem.foreign.first() == Some(case.implementation);
            return Ok(self.first.as_ref().filter(|_| !is_first).and_then(|references| references.first()));
        }
        let plain = Treatment::none(self.task.dtype());
        Ok(self.references(Content::Timed, &plain)?.first())
    }

    /// What a case does to the weights. That it can be run is known: the plan has said so, and nobody asks a second time.
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
