//! What is known of a case on its way to a time.

use crate::peaks::ProductKind;
use crate::worker::protocol::AssignedCase;
use calorimeter_case::{Case, CaseId, Record, Status};
use calorimeter_recipes::Treatment;
use calorimeter_timing::{Failure, Stopwatch, Work};
use calorimeter_zoo::{Output, Seen, Setup, Workload, ZooError};

/// A case that is ready to be timed.
pub struct Arm {
    /// What is launched.
    pub job: Job,
    /// What its times are read from.
    pub stopwatch: Box<dyn Stopwatch>,
    /// What is known of it so far.
    pub record: Record,
    /// What was asked for: the case, what it is compared with, and what another worker saw of its kernels.
    pub assigned: AssignedCase,
    /// The kinds of number that its products may be computed in.
    pub kinds: Vec<ProductKind>,
    /// The share of the operations that is done: blocks of zeros are left out.
    pub share: f64,
    /// What the gate has not compared yet.
    pub unjudged: Unjudged,
}

/// A workload as the timing crate takes it.
pub struct Job(pub Box<dyn Workload>);

impl Job {
    /// Gives back what the workload holds; it cannot be launched any more.
    pub fn close(&mut self) {
        self.0 = Box::new(Closed);
    }
}

/// What is left of a workload that was closed.
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

/// What was compared with a time that cannot be was not compared.
pub fn drop_comparisons_with_refused(arms: &mut [Arm]) {
    let refused: Vec<CaseId> =
        arms.iter().filter(|arm| !arm.record.is_ok()).map(|arm| arm.record.case.id.clone()).collect();
    for Arm { record, .. } in arms {
        if record.speedup.as_ref().is_some_and(|speedup| refused.contains(&speedup.vs)) {
            record.speedup = None;
            record.warn("it has no speed-up: the time of its baseline was refused");
        }
    }
}

/// A case's workload, open, with how it was opened.
pub struct OpenWorkload {
    pub workload: Box<dyn Workload>,
    pub setup: Setup,
    pub treatment: Treatment,
}

/// A case that is probed, and its workload between one time and the next.
pub struct Probed {
    pub case: CaseId,
    pub setup: Setup,
    pub treatment: Treatment,
    pub workload: Option<Box<dyn Workload>>,
}

impl Probed {
    /// Leaves it open.
    pub fn keep(&mut self, Job(workload): Job) {
        self.workload = Some(workload);
    }
}

/// What a case's first pass left: all of it, or what was seen of it where it stays.
pub enum Left {
    Whole(Vec<Output>),
    Seen(Vec<Seen>),
}

/// Buffer sets whose outputs are still to be compared, with those of the first, which are right.
#[derive(Default)]
pub struct Unjudged {
    pub sets: Vec<u32>,
    /// Where they were read.
    pub right: Option<Vec<Output>>,
}

impl Unjudged {
    /// All sets but the first, which left what is right.
    pub fn others(sets: u32, left: Left) -> Self {
        let right = match left {
            Left::Whole(outputs) => Some(outputs),
            Left::Seen(_) => None,
        };
        Self { sets: (1..sets).collect(), right }
    }
}

/// The record of a case that could not be brought so far.
pub fn refused(case: &Case, error: ZooError) -> Box<Record> {
    let (status, reason) = match error {
        ZooError::Unsupported(why) => (Status::Unsupported, why),
        other => (Status::Failed, other.to_string()),
    };
    Box::new(Record::without_time(case.clone(), status, reason))
}
