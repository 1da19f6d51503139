//! Gate: compares outputs with references, and measures the accuracy relative to the unquantized model.

use super::foreign_outputs;
use super::open::open;
use super::prime::prime;
use super::state::{CaseArm, FirstOutput, OpenWorkload, PendingChecks, drop_comparisons_with_refused};
use crate::worker::event::Stage;
use crate::worker::group_context::GroupContext;
use crate::worker::operands::{GroupOperands, InputKind};
use crate::worker::poison::{PoisonedProcess, catch_poison};
use crate::worker::protocol::AssignedCase;
use crate::worker::simulator::Simulator;
use calorimeter_case::record::{Accuracy, Weights, finite};
use calorimeter_case::{Record, Status, Warning};
use calorimeter_external::is_external;
use calorimeter_recipes::{QuantConfig, Sparsity};
use calorimeter_zoo::{DeviceCheck, Output, OutputDigest, Reference, Task, Workload, ZooError, gate};
use std::borrow::Cow;
use std::fmt::Display;
use std::time::{Duration, Instant};

/// Checks a case on the gate inputs in a separate workload, which is closed afterwards; returns the record so far.
pub(super) fn check_gate_inputs(assigned: &AssignedCase, group: &mut GroupContext<'_>) -> Result<Record, ZooError> {
    let case = &assigned.case;
    // Foreign programs have references only for the timed inputs. A case that passed before was already checked on the
    // gate inputs in this process.
    if matches!(group.operands.task, Task::Foreign(_)) || group.operands.passed_cases.contains(&case.id) {
        return Ok(Record::new(case.clone(), Status::Ok));
    }
    let mut opened = open(assigned, InputKind::Gate, group)?;
    let mut record = Record::new(case.clone(), Status::Ok);
    let output = prime(&mut opened, &mut record, InputKind::Gate, group)?;
    let (workload, treatment) = (&*opened.workload, &assigned.spec.treatment);
    group.listener.report_progress(&case.id, Stage::Check);
    let judged = OutputChecker { workload, treatment, content: InputKind::Gate, label: String::new() };
    judged.compare(&output, &mut record, group.operands)?;
    Ok(record)
}

/// Compares the outputs of the first pass with their references; fills in status, accuracy and weight size.
pub(super) fn check_first_output(
    open: &OpenWorkload<'_>,
    output: &FirstOutput,
    record: &mut Record,
    group: &mut GroupContext<'_>,
) -> Result<(), ZooError> {
    let (workload, treatment) = (&*open.workload, &open.assigned.spec.treatment);
    group.listener.report_progress(&record.case.id, Stage::Check);
    let operands = &mut *group.operands;
    let judging = OutputChecker { workload, treatment, content: InputKind::Timed, label: String::new() };
    let kernel_rel_l2 = judging.compare(output, record, operands)?;
    if operands.simulator.is_some() {
        // A simulated case has no weights and no accuracy.
        return Ok(());
    }
    if let Some(yardstick) = operands.accuracy_reference(&record.case)?
        && let Some(sampled) = sampled_values(output, yardstick)
    {
        let scheme = gate::accuracy(&sampled, &yardstick.values);
        record.accuracy = Some(Box::new(Accuracy {
            sqnr_db: finite(scheme.sqnr_db),
            rel_l2: finite(scheme.rel_l2),
            max_abs: finite(scheme.max_abs),
            max_rel: None,
            cosine: finite(scheme.cosine),
            kernel_rel_l2,
        }));
    }
    if let (Task::Foreign(problem), FirstOutput::Downloaded(outputs)) = (&operands.task, output) {
        foreign_outputs::record_largest_errors(problem, outputs, record, operands);
    }
    let plain = QuantConfig::unquantized(operands.task.dtype());
    let baseline_weight_bytes = operands.task.weight_bytes(&plain);
    // Another process does not report the size of its weights.
    let reports_size = !is_external(record.case.implementation);
    record.weights = Weights {
        weight_bytes: baseline_weight_bytes.filter(|_| reports_size).map(|_| workload.weight_bytes()),
        baseline_weight_bytes,
        quantise_ns: workload.quantization_time().map(|time| time.as_nanos() as u64),
    };
    let timed = group.assignment.purpose.is_timed();
    // Block sparsity skips its zero blocks.
    let semi_structured = treatment.sparsity == Some(Sparsity::SemiStructured);
    if record.is_ok() && timed && semi_structured && !workload.skips_zeros() {
        record.warnings.push(Warning::dense_kernel());
    }
    Ok(())
}

/// Elements of the first output at the reference's sample positions. `None` if some are missing, because a foreign
/// program may write less.
fn sampled_values<'a>(output: &'a FirstOutput, reference: &Reference) -> Option<Cow<'a, [f64]>> {
    match output {
        FirstOutput::Downloaded(outputs) => {
            let output = outputs.first()?;
            let whole = output.values.len() == output.rows * output.cols;
            let holds = whole && reference.sample.is_within([output.rows, output.cols]);
            holds.then(|| output.sampled(&reference.sample).into())
        }
        FirstOutput::Digest(digests) => {
            let OutputDigest { sampled, .. } = digests.first()?;
            (sampled.len() == reference.values.len()).then(|| sampled.into())
        }
    }
}

/// Time limit for checking other buffer sets before the measurement; at least one is checked.
const CHECK_TIME: Duration = Duration::from_millis(250);

/// Compares the outputs of the buffer sets other than the first, whose outputs passed. Returns the sets that exceeded
/// the time limit; they are checked after the last window, when each holds the output of a timed pass.
pub(super) fn check_buffer_sets(
    open: &mut OpenWorkload<'_>,
    output: FirstOutput,
    record: &mut Record,
    group: &mut GroupContext<'_>,
) -> Result<PendingChecks, ZooError> {
    let OpenWorkload { assigned, workload, setup } = open;
    let (operands, treatment) = (&mut *group.operands, &assigned.spec.treatment);
    let mut unjudged = PendingChecks::for_other_sets(setup.sets, output);
    let mut sets = BufferSetChecks { workload: &mut **workload, treatment, record, operands, pending: &mut unjudged };
    let start = Instant::now();
    for passes in 1..setup.sets {
        if !sets.record.is_ok() || (passes > 1 && start.elapsed() > CHECK_TIME) {
            break;
        }
        sets.check_next("of")?;
    }
    if unjudged.sets.is_empty() {
        unjudged.reference = None;
    }
    Ok(unjudged)
}

/// Checks after the measurement: the last outputs of sets that are still pending, and one more pass of each case on a
/// pseudo-random set.
pub(crate) fn check_after_timing(arms: &mut [CaseArm], group: &mut GroupContext<'_>) -> Result<(), PoisonedProcess> {
    for CaseArm { job, record, assigned, pending_checks: unjudged, .. } in
        arms.iter_mut().filter(|arm| arm.record.is_ok())
    {
        let (id, mut unjudged) = (record.case.id.clone(), std::mem::take(unjudged));
        let workload = job.0.as_mut();
        group.listener.report_progress(&id, Stage::Check);
        let judged = catch_poison(&id, || -> Result<(), ZooError> {
            let (treatment, operands) = (&assigned.spec.treatment, &mut *group.operands);
            let mut sets = BufferSetChecks { workload, treatment, record, operands, pending: &mut unjudged };
            sets.check_last_outputs()?;
            sets.check_pending()?;
            if sets.record.is_ok() { sets.check_random_set() } else { Ok(()) }
        })?;
        if let Err(error) = judged {
            record.outcome.status = Status::Failed;
            record.outcome.reason = Some(format!("after the last window: {error}"));
        }
        if !record.is_ok() {
            record.speedup = None;
        }
    }
    drop_comparisons_with_refused(arms);
    Ok(())
}

/// Checks of a case's buffer sets.
struct BufferSetChecks<'a> {
    workload: &'a mut dyn Workload,
    treatment: &'a QuantConfig,
    record: &'a mut Record,
    operands: &'a mut GroupOperands,
    pending: &'a mut PendingChecks,
}

/// Labels of outputs in error messages: output by a timed pass, or by an additional one.
const LAST_PASS: &str = "of the last pass on";
const EXTRA_PASS: &str = "after the last window, of";

impl BufferSetChecks<'_> {
    /// Runs a check on the device; `None` if there is none.
    fn on_device<T>(
        &mut self,
        check: impl FnOnce(&mut dyn DeviceCheck) -> Result<Option<T>, ZooError>,
    ) -> Result<Option<T>, ZooError> {
        self.workload.device_check().map_or(Ok(None), check)
    }

    fn matches_reference(&mut self, set: u32) -> Result<bool, ZooError> {
        Ok(self.on_device(|check| check.matches_reference(set))? == Some(true))
    }

    /// Checks the output of the last pass on each pending set.
    fn check_last_outputs(&mut self) -> Result<(), ZooError> {
        for set in std::mem::take(&mut self.pending.sets) {
            if self.matches_reference(set)? {
                continue;
            }
            match self.workload.last_outputs(set)? {
                Some(outputs) => self.compare_set(LAST_PASS, set, outputs)?,
                None => self.pending.sets.push(set),
            }
        }
        Ok(())
    }

    /// Checks sets that no pass reached, or whose outputs were overwritten, in one more round through all sets.
    fn check_pending(&mut self) -> Result<(), ZooError> {
        for _ in 0..self.set_count() {
            if self.pending.sets.is_empty() || !self.record.is_ok() {
                break;
            }
            if self.pending.sets.contains(&self.workload.next_set()) {
                self.check_next(EXTRA_PASS)?;
            } else {
                self.workload.launch()?;
            }
        }
        Ok(())
    }

    /// Checks a pseudo-random set: its last output, and then one more pass.
    fn check_random_set(&mut self) -> Result<(), ZooError> {
        // The digits of a measured time serve as random numbers.
        let set = self.record.time.windows.last().map_or(0, |window| window.nanos) % self.set_count();
        if !self.matches_reference(set as u32)?
            && let Some(outputs) = self.workload.last_outputs(set as u32)?
        {
            self.compare_set(LAST_PASS, set as u32, outputs)?;
        }
        for _ in 0..set {
            self.workload.launch()?;
        }
        self.check_next(EXTRA_PASS)
    }

    fn set_count(&self) -> u64 {
        self.record.execution.rotation.as_ref().map_or(1, |rotation| u64::from(rotation.sets).max(1))
    }

    /// Runs one pass on the next set. Its outputs are downloaded only if they differ bitwise from the reference set.
    fn check_next(&mut self, when: &str) -> Result<(), ZooError> {
        let set = self.workload.next_set();
        self.pending.sets.retain(|&other| other != set);
        let outputs = match self.on_device(|check| check.run_and_match())? {
            Some(true) => return Ok(()),
            Some(false) => self.workload.last_outputs(set)?.unwrap_or_default(),
            None => self.workload.outputs()?,
        };
        self.compare_set(when, set, outputs)
    }

    /// Accepts outputs that equal the reference set bit for bit. Others are compared with the references and, if
    /// available, element by element with the reference set. A failed record keeps its reason.
    fn compare_set(&mut self, when: &str, set: u32, outputs: Vec<Output>) -> Result<(), ZooError> {
        if !self.record.is_ok() {
            return Ok(());
        }
        if self.pending.reference.is_none() {
            self.pending.reference = self.on_device(|check| check.reference_outputs())?;
        }
        let (operands, right) = (&mut *self.operands, self.pending.reference.as_deref().unwrap_or_default());
        if !outputs.is_empty() && operands.task.are_rotations_of(&outputs, right, set) {
            return Ok(());
        }
        let outputs = operands.task.rotate_back(outputs, set);
        let (treatment, label) = (self.treatment, format!(" {when} buffer set {set}"));
        let judging = OutputChecker { workload: &*self.workload, treatment, content: InputKind::Timed, label };
        let output = FirstOutput::Downloaded(outputs);
        if judging.compare(&output, self.record, operands)?.is_some()
            && let FirstOutput::Downloaded(outputs) = &output
            && !right.is_empty()
        {
            judging.compare_with_first_set(outputs, right, self.record, operands);
        }
        Ok(())
    }
}

/// Comparison of outputs with references, with a label for messages.
struct OutputChecker<'a> {
    workload: &'a dyn Workload,
    treatment: &'a QuantConfig,
    content: InputKind,
    label: String,
}

impl OutputChecker<'_> {
    /// Compares outputs with their references and records a mismatch; returns the relative error if they pass.
    fn compare(
        &self,
        output: &FirstOutput,
        record: &mut Record,
        operands: &mut GroupOperands,
    ) -> Result<Option<f64>, ZooError> {
        let (tf32, task) = (self.workload.may_use_tf32(), operands.task.clone());
        if let (Some(_), FirstOutput::Downloaded(outputs)) = (&operands.simulator, output) {
            return Ok(Simulator::check(outputs).map(|()| 0.0).map_err(|why| self.refuse(why, record)).ok());
        }
        if let (Task::Foreign(problem), FirstOutput::Downloaded(outputs)) = (&task, output) {
            let judged =
                foreign_outputs::check_foreign_outputs(problem, outputs, self.workload.is_process(), record, operands);
            if judged.is_err() {
                // The errors of an earlier output were within the tolerance.
                foreign_outputs::record_largest_errors(problem, outputs, record, operands);
            }
            return Ok(judged.map_err(|mismatch| self.refuse(mismatch, record)).ok());
        }
        let references = operands.references(self.content, self.treatment)?;
        let treatment = &self.judged_treatment(record);
        let judged = match output {
            FirstOutput::Downloaded(outputs) => task.judge(treatment, outputs, references, tf32),
            FirstOutput::Digest(digests) => task.judge(treatment, digests, references, tf32),
        };
        match judged {
            Ok(judged) => {
                if judged.tf32 {
                    record.execution.tf32 = true;
                    record.warnings.push(Warning::tf32());
                }
                Ok(Some(judged.rel_l2))
            }
            Err(mismatch) => {
                self.refuse(mismatch, record);
                Ok(None)
            }
        }
    }

    /// Compares all elements with the outputs of another set, which passed, and records a mismatch.
    fn compare_with_first_set(
        &self,
        outputs: &[Output],
        right: &[Output],
        record: &mut Record,
        operands: &GroupOperands,
    ) {
        let treatment = &self.judged_treatment(record);
        if let Err(mismatch) = operands.task.judge_against_outputs(treatment, outputs, right, record.execution.tf32) {
            self.refuse(mismatch, record);
        }
    }

    /// Treatment for the choice of tolerances.
    fn judged_treatment(&self, record: &Record) -> QuantConfig {
        QuantConfig { rounds_independently: is_external(record.case.implementation), ..*self.treatment }
    }

    fn refuse(&self, mismatch: impl Display, record: &mut Record) {
        if record.is_ok() {
            record.outcome.status = Status::Mismatch;
            record.outcome.reason = Some(format!("wrong output{}: {mismatch}", self.label));
        }
    }
}
