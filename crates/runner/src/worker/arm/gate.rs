//! Whether what was computed is right, and how far it is from the unquantised model.

use super::state::{Opened, TF32};
use crate::worker::scene::Scene;
use calorimeter_case::Status;
use calorimeter_case::record::{Accuracy, Weights, finite};
use calorimeter_recipes::{Sparsity, Treatment};
use calorimeter_zoo::{Output, ZooError, gate};

/// Compares outputs with their references and fills in what follows from that.
pub fn judge(opened: &mut Opened, outputs: &[Output], scene: &mut Scene<'_>) -> Result<(), ZooError> {
    let Opened { workload, treatment, record, .. } = opened;
    let (operands, tf32) = (&mut *scene.operands, workload.may_use_tf32());
    let task = operands.task.clone();
    let judged = task.judge(treatment, outputs, operands.references(treatment)?, tf32);
    if judged.as_ref().is_ok_and(|judged| judged.tf32) {
        record.warn(TF32);
    }
    let plain = Treatment::none(task.dtype());
    if let (Some(unquantised), Some(output)) = (operands.references(&plain)?.first(), outputs.first()) {
        let scheme = gate::accuracy(&output.sampled(&unquantised.sample), &unquantised.values);
        record.accuracy = Some(Accuracy {
            sqnr_db: finite(scheme.sqnr_db),
            rel_l2: finite(scheme.rel_l2),
            max_abs: finite(scheme.max_abs),
            cosine: finite(scheme.cosine),
            kernel_rel_l2: judged.as_ref().ok().map(|judged| judged.rel_l2),
        });
    }
    let baseline_weight_bytes = task.weight_bytes(&plain);
    record.weights = Weights {
        weight_bytes: baseline_weight_bytes.map(|_| workload.weight_bytes()),
        baseline_weight_bytes,
        quantise_ns: workload.quantising().map(|time| time.as_nanos() as u64),
    };
    match judged {
        Err(mismatch) => {
            record.outcome.status = Status::Mismatch;
            record.outcome.reason = Some(format!("wrong output: {mismatch}"));
        }
        Ok(_) if scene.assignment.timing.is_some() && treatment.sparsity == Some(Sparsity::SemiStructured) => {
            record.warn(TWO_OF_FOUR);
        }
        Ok(_) => {}
    }
    Ok(())
}

/// Said where half of a weight is zero and all of it is multiplied; block sparsity leaves its zero blocks out.
const TWO_OF_FOUR: &str = "semi-sparse: the pruned weight is stored compressed and multiplied dense, \
     because no kernel here uses sparse tensor cores; the time is not that of sparsity";
