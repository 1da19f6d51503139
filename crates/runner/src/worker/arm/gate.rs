//! Whether what was computed is right, and how far it is from the unquantised model.

use super::open::open;
use super::prime::prime;
use super::state::{Arm, Opened, TF32, drop_comparisons_with_refused, refused};
use crate::platforms;
use crate::worker::operands::{Content, Operands};
use crate::worker::poison::{Poisoned, guarded};
use crate::worker::protocol::AssignedCase;
use crate::worker::scene::Scene;
use calorimeter_case::record::{Accuracy, Weights, finite};
use calorimeter_case::{Record, Status};
use calorimeter_recipes::{Sparsity, Treatment};
use calorimeter_zoo::{Output, Workload, ZooError, gate};

/// Runs a case on the gate's data in a workload of its own, which is closed again; answers the record so far.
pub fn try_out(assigned: &AssignedCase, scene: &mut Scene<'_>) -> Result<Record, Box<Record>> {
    let mut opened = open(assigned, Content::Gate, scene)?;
    let case = &assigned.case;
    let outputs = prime(assigned, &mut opened, Content::Gate, scene).map_err(|error| refused(case, error))?;
    let Opened { workload, treatment, mut record, .. } = opened;
    let judged = Judging { workload: &*workload, treatment: &treatment, content: Content::Gate, whose: String::new() };
    judged.compare(&outputs, &mut record, scene.operands).map_err(|error| refused(case, error))?;
    Ok(record)
}

/// Compares the outputs of the first pass with their references and fills in what follows from that.
pub fn judge(opened: &mut Opened, outputs: &[Output], scene: &mut Scene<'_>) -> Result<(), ZooError> {
    let Opened { workload, treatment, record, .. } = opened;
    let operands = &mut *scene.operands;
    let judging = Judging { workload: &**workload, treatment, content: Content::Timed, whose: String::new() };
    let kernel_rel_l2 = judging.compare(outputs, record, operands)?;
    let plain = Treatment::none(operands.task.dtype());
    if let (Some(unquantised), Some(output)) = (operands.references(Content::Timed, &plain)?.first(), outputs.first()) {
        let scheme = gate::accuracy(&output.sampled(&unquantised.sample), &unquantised.values);
        record.accuracy = Some(Accuracy {
            sqnr_db: finite(scheme.sqnr_db),
            rel_l2: finite(scheme.rel_l2),
            max_abs: finite(scheme.max_abs),
            cosine: finite(scheme.cosine),
            kernel_rel_l2,
        });
    }
    let baseline_weight_bytes = operands.task.weight_bytes(&plain);
    record.weights = Weights {
        weight_bytes: baseline_weight_bytes.map(|_| workload.weight_bytes()),
        baseline_weight_bytes,
        quantise_ns: workload.quantising().map(|time| time.as_nanos() as u64),
    };
    let timed = scene.assignment.timing.is_some();
    if record.is_ok() && timed && treatment.sparsity == Some(Sparsity::SemiStructured) {
        record.warn(TWO_OF_FOUR);
    }
    Ok(())
}

/// Compares the output of every buffer set, where they differ, now that all that is to be compiled has been. Those of the
/// first pass were found right.
pub fn judge_sets(opened: &mut Opened, right: &[Output], scene: &mut Scene<'_>) -> Result<(), ZooError> {
    let Opened { workload, treatment, record, setup } = opened;
    if !scene.operands.task.varies_its_inputs() {
        return Ok(());
    }
    for _ in 0..setup.sets {
        if record.is_ok() {
            pass(workload.as_mut(), treatment, "of", right, record, scene.operands)?;
        }
    }
    Ok(())
}

/// Compares the output of one more pass of each measured case, on a buffer set that nobody chose.
pub fn judge_again(arms: &mut [Arm], scene: &mut Scene<'_>) -> Result<(), Poisoned> {
    if platforms::of(scene.operands.device).is_scripted() {
        return Ok(());
    }
    for Arm { job, record, .. } in arms.iter_mut().filter(|arm| arm.record.is_ok()) {
        let case = record.case.clone();
        let judged = guarded(&case.id, || -> Result<(), ZooError> {
            let treatment = scene.operands.treatment(&case)?;
            let sets = record.execution.rotation.as_ref().map_or(1, |rotation| rotation.sets);
            // The digits of a measured time are as good as drawn.
            let chance = record.time.windows.last().map_or(0, |window| window.nanos);
            for _ in 0..chance % u64::from(sets.max(1)) {
                job.0.launch()?;
            }
            pass(job.0.as_mut(), &treatment, "after the last window, of", &[], record, scene.operands)
        })?;
        if let Err(error) = judged {
            record.outcome.status = Status::Failed;
            record.outcome.reason = Some(format!("after the last window: {error}"));
        }
    }
    drop_comparisons_with_refused(arms);
    Ok(())
}

/// One pass, whose output is compared. If it has the bits of one that is right, it is right.
fn pass(
    workload: &mut dyn Workload,
    treatment: &Treatment,
    when: &str,
    right: &[Output],
    record: &mut Record,
    operands: &mut Operands,
) -> Result<(), ZooError> {
    let set = workload.next_set();
    let outputs = operands.task.as_of_first_set(workload.outputs()?, set);
    if !outputs.is_empty() && outputs == right {
        return Ok(());
    }
    let whose = format!(" {when} buffer set {set}");
    let judging = Judging { workload, treatment, content: Content::Timed, whose };
    judging.compare(&outputs, record, operands).map(|_| ())
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
    fn compare(
        &self,
        outputs: &[Output],
        record: &mut Record,
        operands: &mut Operands,
    ) -> Result<Option<f64>, ZooError> {
        let (tf32, task) = (self.workload.may_use_tf32(), operands.task.clone());
        match task.judge(self.treatment, outputs, operands.references(self.content, self.treatment)?, tf32) {
            Ok(judged) => {
                if judged.tf32 && !record.outcome.warnings.iter().any(|warning| warning == TF32) {
                    record.warn(TF32);
                }
                Ok(Some(judged.rel_l2))
            }
            Err(mismatch) => {
                if record.is_ok() {
                    record.outcome.status = Status::Mismatch;
                    record.outcome.reason = Some(format!("wrong output{}: {mismatch}", self.whose));
                }
                Ok(None)
            }
        }
    }
}

/// Said where half of a weight is zero and all of it is multiplied; block sparsity leaves its zero blocks out.
const TWO_OF_FOUR: &str = "semi-sparse: the pruned weight is stored compressed and multiplied dense, \
     because no kernel here uses sparse tensor cores; the time is not that of sparsity";
