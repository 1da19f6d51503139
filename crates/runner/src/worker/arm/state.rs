//! State of a case between assignment and measurement.

use crate::peaks::ProductKind;
use crate::worker::protocol::AssignedCase;
use calorimeter_case::{Case, CaseId, Record, Status};
use calorimeter_recipes::Treatment;
use calorimeter_timing::{Failure, Stopwatch, Work};
use calorimeter_zoo::{Output, Seen, Setup, Workload, ZooError};

/// Case that is ready to be timed.
pub struct Arm {
    /// Workload to launch.
    pub job: Job,
    /// Stopwatch of its times.
    pub stopwatch: Box<dyn Stopwatch>,
    /// Record so far.
    pub record: Record,
    /// Assignment: the case, its baseline, and kernels traced by another worker.
    pub assigned: AssignedCase,
    /// GEMM kinds in which its matmuls may be computed.
    pub kinds: Vec<ProductKind>,
    /// Share of the operations that are executed; block sparsity skips zero blocks.
    pub share: f64,
    /// Outputs that the gate has not compared yet.
    pub unjudged: Unjudged,
}

/// Adapter of a workload for the timing crate.
pub struct Job(pub Box<dyn Workload>);

impl Job {
    /// Frees the workload; later launches fail.
    pub fn close(&mut self) {
        self.0 = Box::new(Closed);
    }
}

/// Replacement of a workload that was closed.
struct Closed;

impl Workload for Closed {
    fn launch(&mut self) -> Result<(), ZooError> {
        Err(ZooError::Device("its workload is closed".into()))
    }

    fn settle(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        self.launch().map(|()| Vec::new())
    }

    fn weight_bytes(&self) -> u64 {
        0
    }
}

impl Work for Job {
    fn launch(&mut self) -> Result<(), Failure> {
        Ok(self.0.launch()?)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(self.0.settle()?)
    }
}

/// Removes speed-ups whose baseline was refused.
pub fn drop_comparisons_with_refused(arms: &mut [Arm]) {
    let refused: Vec<CaseId> =
        arms.iter().filter(|arm| !arm.record.is_ok()).map(|arm| arm.record.case.id.clone()).collect();
    for Arm { record, .. } in arms {
        if record.speedup.as_ref().is_some_and(|speedup| refused.contains(&speedup.vs)) {
            record.speedup = None;
            record.warn("no speed-up: the time of the baseline was refused");
        }
    }
}

/// Open workload of a case and its setup.
pub struct OpenWorkload {
    pub workload: Box<dyn Workload>,
    pub setup: Setup,
    pub treatment: Treatment,
}

/// Case of the interference probe; its workload stays open between measurements.
pub struct Probed {
    pub case: CaseId,
    pub setup: Setup,
    pub treatment: Treatment,
    pub workload: Option<Box<dyn Workload>>,
}

impl Probed {
    /// Stores the open workload.
    pub fn keep(&mut self, Job(workload): Job) {
        self.workload = Some(workload);
    }
}

/// Output of the first pass: downloaded, or reduced to a digest on the device.
pub enum Left {
    Whole(Vec<Output>),
    Seen(Vec<Seen>),
}

/// Buffer sets that are not checked yet, and the outputs to compare them with.
#[derive(Default)]
pub struct Unjudged {
    pub sets: Vec<u32>,
    /// Outputs of the first set, which passed; `None` until they are downloaded.
    pub right: Option<Vec<Output>>,
}

impl Unjudged {
    /// All sets except the first, whose outputs passed.
    pub fn others(sets: u32, output: Left) -> Self {
        let right = match output {
            Left::Whole(outputs) => Some(outputs),
            Left::Seen(_) => None,
        };
        Self { sets: (1..sets).collect(), right }
    }
}

/// Record of a case that failed before it could be timed.
pub fn refused(case: &Case, error: ZooError) -> Box<Record> {
    let (status, reason) = match error {
        ZooError::Unsupported(why) => (Status::Unsupported, why),
        other => (Status::Failed, other.to_string()),
    };
    Box::new(Record::without_time(case.clone(), status, reason))
}
