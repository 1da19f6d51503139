//! Whether what was computed is right, and how far it is from the unquantized model.

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

/// Runs a case on the gate's data in a workload of its own, which is closed again; answers the record so far.
pub fn try_out(assigned: &AssignedCase, scene: &mut Scene<'_>) -> Result<Record, Box<Record>> {
    let case = &assigned.case;
    // Of others, what is right is known of the data alone that the first program computed with; what has passed was right on the
    // gate's data in this very process.
    if matches!(scene.operands.task, Task::Foreign(_)) || scene.operands.passed.contains(&case.id) {
        return Ok(Record::new(case.clone(), Status::Ok));
    }
    let mut opened = open(assigned, Content::Gate, scene)?;
    let mut record = Record::new(case.clone(), Status::Ok);
    let left = prime(assigned, &mut opened, &mut record, Content::Gate, scene).map_err(|error| refused(case, error))?;
    let OpenWorkload { workload, treatment, .. } = opened;
    scene.listener.touch(&case.id, Stage::Judge);
    let judged = Judging { workload: &*workload, treatment: &treatment, content: Content::Gate, whose: String::new() };
    judged.compare(&left, &mut record, scene.operands).map_err(|error| refused(case, error))?;
    Ok(record)
}

/// Compares the outputs of the first pass with their references and fills in what follows from that.
pub fn judge(open: &OpenWorkload, left: &Left, record: &mut Record, scene: &mut Scene<'_>) -> Result<(), ZooError> {
    let OpenWorkload { workload, treatment, .. } = open;
    scene.listener.touch(&record.case.id, Stage::Judge);
    let operands = &mut *scene.operands;
    let judging = Judging { workload: &**workload, treatment, content: Content::Timed, whose: String::new() };
    let kernel_rel_l2 = judging.compare(left, record, operands)?;
    if let Some(yardstick) = operands.yardstick(&record.case)?
        && let Some(sampled) = sampled(left, yardstick)
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
    let timed = scene.assignment.timing.is_some();
    let semi_structured = treatment.sparsity == Some(Sparsity::SemiStructured);
    if record.is_ok() && timed && semi_structured && !workload.skips_zeros() {
        record.warn(TWO_OF_FOUR);
    }
    Ok(())
}

/// The first output's numbers where a reference was computed, if they are all there: a program of others may leave less.
fn sampled<'a>(left: &'a Left, reference: &Reference) -> Option<Cow<'a, [f64]>> {
    match left {
        Left::Whole(outputs) => {
            let output = outputs.first()?;
            let whole = output.values.len() == output.rows * output.cols;
            let holds = whole && reference.sample.is_within([output.rows, output.cols]);
            holds.then(|| output.sampled(&reference.sample).into())
        }
        Left::Seen(seen) => {
            let Seen { sampled, .. } = seen.first()?;
            (sampled.len() == reference.values.len()).then(|| sampled.into())
        }
    }
}

/// Passes on other buffer sets are compared before anything is timed for so long, and one at least.
const BEFORE: Duration = Duration::from_millis(250);

/// Compares the outputs of other buffer sets than the first, whose were found right. Those that there is no time for are
/// compared after the last window, when each of them holds what a timed pass has left: they are answered.
pub fn judge_sets(
    open: &mut OpenWorkload,
    left: Left,
    record: &mut Record,
    scene: &mut Scene<'_>,
) -> Result<Unjudged, ZooError> {
    let OpenWorkload { workload, setup, .. } = open;
    let operands = &mut *scene.operands;
    let mut unjudged = Unjudged::others(setup.sets, left);
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

/// Compares the outputs that the last passes have left, where they were not before, and that of one more pass of each
/// measured case, on a buffer set that nobody chose.
pub fn judge_again(arms: &mut [Arm], scene: &mut Scene<'_>) -> Result<(), Poisoned> {
    if platforms::of(scene.operands.device).is_scripted() {
        return Ok(());
    }
    for Arm { job, record, unjudged, .. } in arms.iter_mut().filter(|arm| arm.record.is_ok()) {
        let (id, mut unjudged) = (record.case.id.clone(), std::mem::take(unjudged));
        let workload = job.0.as_mut();
        scene.listener.touch(&id, Stage::Judge);
        let judged = guarded(&id, || -> Result<(), ZooError> {
            let mut sets = Sets { workload, record, operands: &mut *scene.operands, unjudged: &mut unjudged };
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

/// The buffer sets of a case, of which the outputs of some are known to be right.
struct Sets<'a> {
    workload: &'a mut dyn Workload,
    record: &'a mut Record,
    operands: &'a mut Operands,
    unjudged: &'a mut Unjudged,
}

/// What is said of an output that a timed pass has left, and of one of another pass.
const LEFT: &str = "of the last pass on";
const AGAIN: &str = "after the last window, of";

impl Sets<'_> {
    /// What the last pass on each set has left, where it was not compared before.
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

    /// Sets that no pass has reached, or whose outputs are gone: one more round through all of them.
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

    /// A set that nobody chose: what the last pass on it has left, and then one pass more.
    fn any(&mut self) -> Result<(), ZooError> {
        // The digits of a measured time are as good as drawn.
        let chance = self.record.time.windows.last().map_or(0, |window| window.nanos) % self.count();
        if self.workload.is_like_first(chance as u32)? != Some(true)
            && let Some(outputs) = self.workload.kept(chance as u32)?
        {
            self.compare(LEFT, chance as u32, outputs)?;
        }
        for _ in 0..chance {
            self.workload.launch()?;
        }
        self.next(AGAIN)
    }

    fn count(&self) -> u64 {
        self.record.execution.rotation.as_ref().map_or(1, |rotation| u64::from(rotation.sets).max(1))
    }

    /// One pass on the next set. Its outputs are read where they have not the bits of those that are right.
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

    /// Outputs that have the bits of those that are right are right. Others are compared with their references, and
    /// everywhere with those that are right, if they are known. What was refused stays so.
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
        let (treatment, whose) = (operands.treatment(&self.record.case)?, format!(" {when} buffer set {set}"));
        let judging = Judging { workload: &*self.workload, treatment: &treatment, content: Content::Timed, whose };
        let left = Left::Whole(outputs);
        if judging.compare(&left, self.record, operands)?.is_some()
            && let Left::Whole(outputs) = &left
            && !right.is_empty()
        {
            judging.compare_beside(outputs, right, self.record, operands);
        }
        Ok(())
    }
}

/// Whose outputs are compared.
struct Judging<'a> {
    workload: &'a dyn Workload,
    treatment: &'a Treatment,
    content: Content,
    whose: String,
}

impl Judging<'_> {
    /// Compares outputs with their references and writes down what is wrong; answers the relative error of what is not.
    fn compare(&self, left: &Left, record: &mut Record, operands: &mut Operands) -> Result<Option<f64>, ZooError> {
        let (tf32, task) = (self.workload.may_use_tf32(), operands.task.clone());
        if let (Task::Foreign(problem), Left::Whole(outputs)) = (&task, left) {
            let judged = beside_first::judge(problem, outputs, self.workload.is_a_process(), record, operands);
            return Ok(judged.map_err(|mismatch| self.refuse(mismatch, record)).ok());
        }
        let references = operands.references(self.content, self.treatment)?;
        let judged = match left {
            Left::Whole(outputs) => task.judge(self.treatment, outputs, references, tf32),
            Left::Seen(seen) => task.judge(self.treatment, seen, references, tf32),
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

    /// Compares outputs with those of another set that are right, and writes down what is wrong.
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

/// Said where f32 was asked for and tensor cores computed something coarser.
const TF32: &str =
    "f32 operands were rounded to TF32 (10-bit mantissas) for tensor cores: not comparable with full f32";

/// Said where half of a weight is zero and all of it is multiplied; block sparsity leaves its zero blocks out.
const TWO_OF_FOUR: &str = "semi-sparse: the pruned weight is stored compressed and multiplied dense, \
     because its kernel does not use sparse tensor cores; the time is not that of sparsity";
