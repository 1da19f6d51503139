//! Gate: compares outputs with references, and measures the accuracy relative to the unquantized model.

use super::beside_first;
use super::open::open;
use super::prime::prime;
use super::state::{Arm, Left, OpenWorkload, Unjudged, drop_comparisons_with_refused, refused};
use crate::platforms;
use crate::worker::event::Stage;
use crate::worker::operands::{Content, Operands};
use crate::worker::poison::{Poisoned, guarded};
use crate::worker::protocol::AssignedCase;
use crate::worker::scene::Scene;
use calorimeter_case::record::{Accuracy, Weights, finite};
use calorimeter_case::{Record, Status};
use calorimeter_recipes::{Sparsity, Treatment};
use calorimeter_zoo::gate::Mismatch;
use calorimeter_zoo::{Output, Reference, Seen, Task, Workload, ZooError, gate};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Checks a case on the gate inputs in a separate workload, which is closed afterwards; returns the record so far.
pub fn try_out(assigned: &AssignedCase, group: &mut Scene<'_>) -> Result<Record, Box<Record>> {
    let case = &assigned.case;
    // Foreign programs have references only for the timed inputs. A case that passed before was already checked on the
    // gate inputs in this process.
    if matches!(group.operands.task, Task::Foreign(_)) || group.operands.passed.contains(&case.id) {
        return Ok(Record::new(case.clone(), Status::Ok));
    }
    let mut opened = open(assigned, Content::Gate, group)?;
    let mut record = Record::new(case.clone(), Status::Ok);
    let output =
        prime(assigned, &mut opened, &mut record, Content::Gate, group).map_err(|error| refused(case, error))?;
    let OpenWorkload { workload, treatment, .. } = opened;
    group.listener.touch(&case.id, Stage::Judge);
    let judged = Judging { workload: &*workload, treatment: &treatment, content: Content::Gate, whose: String::new() };
    judged.compare(&output, &mut record, group.operands).map_err(|error| refused(case, error))?;
    Ok(record)
}

/// Compares the outputs of the first pass with their references; fills in status, accuracy and weight size.
pub fn judge(open: &OpenWorkload, output: &Left, record: &mut Record, group: &mut Scene<'_>) -> Result<(), ZooError> {
    let OpenWorkload { workload, treatment, .. } = open;
    group.listener.touch(&record.case.id, Stage::Judge);
    let operands = &mut *group.operands;
    let judging = Judging { workload: &**workload, treatment, content: Content::Timed, whose: String::new() };
    let kernel_rel_l2 = judging.compare(output, record, operands)?;
    if let Some(yardstick) = operands.yardstick(&record.case)?
        && let Some(sampled) = sampled(output, yardstick)
    {
        let scheme = gate::accuracy(&sampled, &yardstick.values);
        record.accuracy = Some(Box::new(Accuracy {
            sqnr_db: finite(scheme.sqnr_db),
            rel_l2: finite(scheme.rel_l2),
            max_abs: finite(scheme.max_abs),
            cosine: finite(scheme.cosine),
            kernel_rel_l2,
        }));
    }
    let plain = Treatment::none(operands.task.dtype());
    let baseline_weight_bytes = operands.task.weight_bytes(&plain);
    record.weights = Weights {
        weight_bytes: baseline_weight_bytes.map(|_| workload.weight_bytes()),
        baseline_weight_bytes,
        quantise_ns: workload.quantizing().map(|time| time.as_nanos() as u64),
    };
    let timed = group.assignment.timing.is_some();
    let semi_structured = treatment.sparsity == Some(Sparsity::SemiStructured);
    if record.is_ok() && timed && semi_structured && !workload.skips_zeros() {
        record.warn(TWO_OF_FOUR);
    }
    Ok(())
}

/// Elements of the first output at the reference's sample positions. `None` if some are missing, because a foreign
/// program may write less.
fn sampled<'a>(output: &'a Left, reference: &Reference) -> Option<Cow<'a, [f64]>> {
    match output {
        Left::Whole(outputs) => {
            let output = outputs.first()?;
            let whole = output.values.len() == output.rows * output.cols;
            let holds = whole && reference.sample.is_within([output.rows, output.cols]);
            holds.then(|| output.sampled(&reference.sample).into())
        }
        Left::Seen(digests) => {
            let Seen { sampled, .. } = digests.first()?;
            (sampled.len() == reference.values.len()).then(|| sampled.into())
        }
    }
}

/// Time limit for checking other buffer sets before the measurement; at least one is checked.
const BEFORE: Duration = Duration::from_millis(250);

/// Compares the outputs of the buffer sets other than the first, whose outputs passed. Returns the sets that exceeded
/// the time limit; they are checked after the last window, when each holds the output of a timed pass.
pub fn judge_sets(
    open: &mut OpenWorkload,
    output: Left,
    record: &mut Record,
    group: &mut Scene<'_>,
) -> Result<Unjudged, ZooError> {
    let OpenWorkload { workload, setup, .. } = open;
    let operands = &mut *group.operands;
    let mut unjudged = Unjudged::others(setup.sets, output);
    let mut sets = Sets { workload: &mut **workload, record, operands, unjudged: &mut unjudged };
    let start = Instant::now();
    for passes in 1..setup.sets {
        if !sets.record.is_ok() || (passes > 1 && start.elapsed() > BEFORE) {
            break;
        }
        sets.next("of")?;
    }
    if unjudged.sets.is_empty() {
        unjudged.right = None;
    }
    Ok(unjudged)
}

/// Checks after the measurement: the last outputs of sets that are still pending, and one more pass of each case on a
/// pseudo-random set.
pub fn judge_again(arms: &mut [Arm], group: &mut Scene<'_>) -> Result<(), Poisoned> {
    if platforms::of(group.operands.device).is_scripted() {
        return Ok(());
    }
    for Arm { job, record, unjudged, .. } in arms.iter_mut().filter(|arm| arm.record.is_ok()) {
        let (id, mut unjudged) = (record.case.id.clone(), std::mem::take(unjudged));
        let workload = job.0.as_mut();
        group.listener.touch(&id, Stage::Judge);
        let judged = guarded(&id, || -> Result<(), ZooError> {
            let mut sets = Sets { workload, record, operands: &mut *group.operands, unjudged: &mut unjudged };
            sets.kept()?;
            sets.rest()?;
            if sets.record.is_ok() { sets.any() } else { Ok(()) }
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
struct Sets<'a> {
    workload: &'a mut dyn Workload,
    record: &'a mut Record,
    operands: &'a mut Operands,
    unjudged: &'a mut Unjudged,
}

/// Labels of outputs in error messages: output by a timed pass, or by an additional one.
const LEFT: &str = "of the last pass on";
const AGAIN: &str = "after the last window, of";

impl Sets<'_> {
    /// Checks the output of the last pass on each pending set.
    fn kept(&mut self) -> Result<(), ZooError> {
        for set in std::mem::take(&mut self.unjudged.sets) {
            if self.workload.is_like_first(set)? == Some(true) {
                continue;
            }
            match self.workload.kept(set)? {
                Some(outputs) => self.compare(LEFT, set, outputs)?,
                None => self.unjudged.sets.push(set),
            }
        }
        Ok(())
    }

    /// Checks sets that no pass reached, or whose outputs were overwritten, in one more round through all sets.
    fn rest(&mut self) -> Result<(), ZooError> {
        for _ in 0..self.count() {
            if self.unjudged.sets.is_empty() || !self.record.is_ok() {
                break;
            }
            if self.unjudged.sets.contains(&self.workload.next_set()) {
                self.next(AGAIN)?;
            } else {
                self.workload.launch()?;
            }
        }
        Ok(())
    }

    /// Checks a pseudo-random set: its last output, and then one more pass.
    fn any(&mut self) -> Result<(), ZooError> {
        // The digits of a measured time serve as random numbers.
        let set = self.record.time.windows.last().map_or(0, |window| window.nanos) % self.count();
        if self.workload.is_like_first(set as u32)? != Some(true)
            && let Some(outputs) = self.workload.kept(set as u32)?
        {
            self.compare(LEFT, set as u32, outputs)?;
        }
        for _ in 0..set {
            self.workload.launch()?;
        }
        self.next(AGAIN)
    }

    fn count(&self) -> u64 {
        self.record.execution.rotation.as_ref().map_or(1, |rotation| u64::from(rotation.sets).max(1))
    }

    /// Runs one pass on the next set. Its outputs are downloaded only if they differ bitwise from the reference set.
    fn next(&mut self, when: &str) -> Result<(), ZooError> {
        let set = self.workload.next_set();
        self.unjudged.sets.retain(|&other| other != set);
        let outputs = match self.workload.passes_like_first()? {
            Some(true) => return Ok(()),
            Some(false) => self.workload.kept(set)?.unwrap_or_default(),
            None => self.workload.outputs()?,
        };
        self.compare(when, set, outputs)
    }

    /// Accepts outputs that equal the reference set bit for bit. Others are compared with the references and, if
    /// available, element by element with the reference set. A failed record keeps its reason.
    fn compare(&mut self, when: &str, set: u32, outputs: Vec<Output>) -> Result<(), ZooError> {
        if !self.record.is_ok() {
            return Ok(());
        }
        if self.unjudged.right.is_none() {
            self.unjudged.right = self.workload.first()?;
        }
        let (operands, right) = (&mut *self.operands, self.unjudged.right.as_deref().unwrap_or_default());
        if !outputs.is_empty() && operands.task.are_moved_on(&outputs, right, set) {
            return Ok(());
        }
        let outputs = operands.task.as_of_first_set(outputs, set);
        let (treatment, label) = (operands.treatment(&self.record.case)?, format!(" {when} buffer set {set}"));
        let judging =
            Judging { workload: &*self.workload, treatment: &treatment, content: Content::Timed, whose: label };
        let output = Left::Whole(outputs);
        if judging.compare(&output, self.record, operands)?.is_some()
            && let Left::Whole(outputs) = &output
            && !right.is_empty()
        {
            judging.compare_beside(outputs, right, self.record, operands);
        }
        Ok(())
    }
}

/// Comparison of outputs with references, with a label for messages.
struct Judging<'a> {
    workload: &'a dyn Workload,
    treatment: &'a Treatment,
    content: Content,
    whose: String,
}

impl Judging<'_> {
    /// Compares outputs with their references and records a mismatch; returns the relative error if they pass.
    fn compare(&self, output: &Left, record: &mut Record, operands: &mut Operands) -> Result<Option<f64>, ZooError> {
        let (tf32, task) = (self.workload.may_use_tf32(), operands.task.clone());
        if let (Task::Foreign(problem), Left::Whole(outputs)) = (&task, output) {
            let judged = beside_first::judge(problem, outputs, self.workload.is_a_process(), record, operands);
            return Ok(judged.map_err(|mismatch| self.refuse(mismatch, record)).ok());
        }
        let references = operands.references(self.content, self.treatment)?;
        let judged = match output {
            Left::Whole(outputs) => task.judge(self.treatment, outputs, references, tf32),
            Left::Seen(digests) => task.judge(self.treatment, digests, references, tf32),
        };
        match judged {
            Ok(judged) => {
                if judged.tf32 && !std::mem::replace(&mut record.execution.tf32, true) {
                    record.warn(TF32);
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
    fn compare_beside(&self, outputs: &[Output], right: &[Output], record: &mut Record, operands: &Operands) {
        if let Err(mismatch) = operands.task.judge_beside(self.treatment, outputs, right, record.execution.tf32) {
            self.refuse(mismatch, record);
        }
    }

    fn refuse(&self, mismatch: Mismatch, record: &mut Record) {
        if record.is_ok() {
            record.outcome.status = Status::Mismatch;
            record.outcome.reason = Some(format!("wrong output{}: {mismatch}", self.whose));
        }
    }
}

/// Warning if f32 was requested and tensor cores computed with TF32.
const TF32: &str =
    "f32 operands were rounded to TF32 (10-bit mantissas) for tensor cores: not comparable with full f32";

/// Warning if a 2:4 sparse weight is multiplied dense. Block sparsity is exempt, because it skips its zero blocks.
const TWO_OF_FOUR: &str = "semi-sparse: the pruned weight is stored compressed and multiplied dense, \
     because its kernel does not use sparse tensor cores; the time is not that of sparsity";
