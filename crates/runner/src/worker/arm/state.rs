//! State of a case between assignment and measurement.

use crate::worker::protocol::AssignedCase;
use calorimeter_case::{Case, CaseId, Record, Status, Warning};
use calorimeter_probe::TimedWorkload;
use calorimeter_probe::peaks::MatmulPrecision;
use calorimeter_timing::{Failure, Stopwatch};
use calorimeter_zoo::{Output, OutputDigest, Setup, Workload, ZooError};

/// Case that is ready to be timed.
pub(crate) struct CaseArm {
    /// Workload to launch.
    pub job: TimedWorkload,
    /// Stopwatch of its times.
    pub stopwatch: Box<dyn Stopwatch>,
    /// Record so far.
    pub record: Record,
    /// Assignment: the case, its baseline, and kernels traced by another worker.
    pub assigned: AssignedCase,
    /// GEMM kinds in which its matmuls may be computed.
    pub matmul_kinds: Vec<MatmulPrecision>,
    /// Share of the operations that are executed; block sparsity skips zero blocks.
    pub computed_share: f64,
    /// Outputs that the gate has not compared yet.
    pub pending_checks: PendingChecks,
}

/// Removes speed-ups whose baseline was refused.
pub(crate) fn drop_comparisons_with_refused(arms: &mut [CaseArm]) {
    let refused: Vec<CaseId> =
        arms.iter().filter(|arm| !arm.record.is_ok()).map(|arm| arm.record.case.id.clone()).collect();
    for CaseArm { record, .. } in arms {
        if record.speedup.as_ref().is_some_and(|speedup| refused.contains(&speedup.vs)) {
            record.speedup = None;
            record.warnings.push(Warning::missing_speedup("the time of the baseline was refused"));
        }
    }
}

/// Open workload of a case and its setup.
pub(crate) struct OpenWorkload<'a> {
    pub assigned: &'a AssignedCase,
    pub workload: Box<dyn Workload>,
    pub setup: Setup,
}

/// Case of the interference probe; its workload stays open between measurements.
pub(crate) struct ProbedCase {
    pub case: CaseId,
    pub setup: Setup,
    pub workload: Option<Box<dyn Workload>>,
}

impl ProbedCase {
    /// Stores the open workload.
    pub(crate) fn store(&mut self, TimedWorkload(workload): TimedWorkload) {
        self.workload = Some(workload);
    }
}

/// Output of the first pass: downloaded, or reduced to a digest on the device.
pub(crate) enum FirstOutput {
    Downloaded(Vec<Output>),
    Digest(Vec<OutputDigest>),
}

/// Buffer sets that are not checked yet, and the outputs to compare them with.
#[derive(Default)]
pub(crate) struct PendingChecks {
    pub sets: Vec<u32>,
    /// Outputs of the first set, which passed; `None` until they are downloaded.
    pub reference: Option<Vec<Output>>,
}

impl PendingChecks {
    /// All sets except the first, whose outputs passed.
    pub(crate) fn for_other_sets(sets: u32, output: FirstOutput) -> Self {
        let reference = match output {
            FirstOutput::Downloaded(outputs) => Some(outputs),
            FirstOutput::Digest(_) => None,
        };
        Self { sets: (1..sets).collect(), reference }
    }
}

/// Record of a case that failed before it could be timed.
pub(crate) fn refused_record(case: &Case, error: &Failure) -> Box<Record> {
    let (status, reason) = match error.downcast_ref() {
        Some(ZooError::Unsupported(why)) => (Status::Unsupported, why.clone()),
        _ => (Status::Failed, error.to_string()),
    };
    Box::new(Record::without_time(case.clone(), status, reason))
}
