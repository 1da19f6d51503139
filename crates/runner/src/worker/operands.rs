//! Task, inputs and reference outputs shared by the cases of an assignment.

use super::protocol::AssignedCase;
use super::simulator::Simulator;
use calorimeter_case::{Case, CaseId, Device};
use calorimeter_recipes::QuantConfig;
use calorimeter_zoo::{Inputs, OutputQuery, Reference, Task, ZooError};
use std::collections::HashSet;

/// Kind of input data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputKind {
    /// Inputs of the gate, designed to expose wrong scales.
    Gate,
    /// Inputs that are timed.
    Timed,
}

/// Task on a device. Its inputs and references are computed on first use.
pub(crate) struct GroupOperands {
    pub task: Task,
    pub device: Device,
    timed_inputs: Option<Inputs>,
    gate_inputs: Option<Inputs>,
    pub(super) references: Vec<(InputKind, QuantConfig, Vec<Reference>)>,
    /// Cases that were measured and passed. A baseline among them may be measured again, if not all cases fit into
    /// memory concurrently.
    pub passed_cases: HashSet<CaseId>,
    /// Outputs of the first foreign program, after it ran.
    pub first_program_outputs: Option<Vec<Reference>>,
    /// Simulator, on devices that compute nothing.
    pub simulator: Option<Simulator>,
}

impl GroupOperands {
    /// Creates the operands from the first case; all cases of the group share them.
    pub(crate) fn new(first: &AssignedCase) -> Self {
        Self {
            task: first.spec.task.clone(),
            device: first.case.device,
            timed_inputs: None,
            gate_inputs: None,
            references: Vec::new(),
            passed_cases: HashSet::new(),
            first_program_outputs: None,
            simulator: None,
        }
    }

    /// True if `others` belong to an equal task on an equal device.
    pub(crate) fn is_equivalent(&self, others: &Self) -> bool {
        (&self.task, self.device) == (&others.task, others.device)
    }

    /// Inputs that are timed.
    pub(crate) fn timed_inputs(&mut self) -> &Inputs {
        self.timed_inputs.get_or_insert_with(|| self.task.inputs())
    }

    pub(crate) fn inputs_for(&mut self, content: InputKind) -> &Inputs {
        match content {
            InputKind::Timed => self.timed_inputs(),
            InputKind::Gate => self.gate_inputs.get_or_insert_with(|| self.task.gate_inputs()),
        }
    }

    /// Reference outputs for a treatment and kind of inputs.
    pub(crate) fn references(&mut self, content: InputKind, treatment: &QuantConfig) -> Result<&[Reference], ZooError> {
        let at = self.reference_index(content, treatment)?;
        Ok(&self.references[at].2)
    }

    /// Index of the reference outputs for a treatment and kind of inputs; computes them on first use.
    fn reference_index(&mut self, content: InputKind, treatment: &QuantConfig) -> Result<usize, ZooError> {
        let same = |known: &(InputKind, QuantConfig, Vec<Reference>)| known.0 == content && known.1 == *treatment;
        if let Some(at) = self.references.iter().position(same) {
            return Ok(at);
        }
        let task = self.task.clone();
        let made = task.references(self.inputs_for(content), treatment)?;
        self.references.push((content, *treatment, made));
        Ok(self.references.len() - 1)
    }

    /// Queries that reduce the outputs to a digest sufficient for all checks. Empty if whole outputs are required: for
    /// foreign programs and simulators, or if accuracy samples other positions.
    pub(crate) fn output_queries(
        &mut self,
        content: InputKind,
        treatment: &QuantConfig,
    ) -> Result<Vec<OutputQuery<'_>>, ZooError> {
        if matches!(self.task, Task::Foreign(_)) || self.simulator.is_some() {
            return Ok(Vec::new());
        }
        let own = self.reference_index(content, treatment)?;
        let yardstick = match content {
            InputKind::Gate => own,
            InputKind::Timed => self.reference_index(content, &QuantConfig::unquantized(self.task.dtype()))?,
        };
        let (references, yardstick) = (&self.references[own].2, self.references[yardstick].2.first());
        let same =
            yardstick.map(|reference| &reference.sample) == references.first().map(|reference| &reference.sample);
        Ok(if same { references.iter().map(Reference::query).collect() } else { Vec::new() })
    }

    /// Reference for the accuracy of a case, if any: the unquantized model in double precision, or the output of the
    /// first foreign program.
    pub(crate) fn accuracy_reference(&mut self, case: &Case) -> Result<Option<&Reference>, ZooError> {
        if let Task::Foreign(problem) = &self.task {
            let is_first = problem.foreign.reference_implementation() == Some(case.implementation);
            return Ok(self
                .first_program_outputs
                .as_ref()
                .filter(|_| !is_first)
                .and_then(|references| references.first()));
        }
        let plain = QuantConfig::unquantized(self.task.dtype());
        Ok(self.references(InputKind::Timed, &plain)?.first())
    }
}
