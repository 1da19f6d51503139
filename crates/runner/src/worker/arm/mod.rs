//! One way to compute a group's workload, on its way to a time: open, prime, gate, clock, and measured with the others.

mod clock;
mod gate;
pub mod measure;
mod mock;
mod open;
mod prime;
mod ranges;
mod roofline;
pub mod sensors;
mod tuning;

use super::event::SeenKernels;
use super::group::Scene;
use super::protocol::AssignedCase;
use calorimeter_case::{CaseId, Device, Record, Status};
use calorimeter_recipes::Treatment;
use calorimeter_timing::{Failure, Stopwatch, Work};
use calorimeter_zoo::{Output, Setup, Workload, ZooError};

/// A case that is ready to be timed.
pub struct Arm {
    /// What is launched.
    pub job: Job,
    /// What its times are read from.
    pub stopwatch: Box<dyn Stopwatch>,
    /// What is known of it so far.
    pub record: Record,
    /// The one that it is compared with.
    pub against: Option<CaseId>,
    /// The kinds of number that its products may be computed in.
    pub kinds: Vec<&'static str>,
    /// The share of the operations that is done: blocks of zeros are left out.
    pub share: f64,
    /// The kernels that another worker saw.
    pub kernels: Option<SeenKernels>,
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

/// A workload that is open, with what is known of it before it has run.
struct Opened {
    workload: Box<dyn Workload>,
    setup: Setup,
    treatment: Treatment,
    record: Record,
}

/// Brings a case to where it can be timed. What cannot be, or is not to be, is answered with its record.
pub fn prepare(assigned: &AssignedCase, scene: &mut Scene<'_>) -> Result<Arm, Box<Record>> {
    let case = &assigned.case;
    if scene.operands.device == Device::Mock {
        return mock::prepare(assigned, scene);
    }
    let mut opened = open::open(assigned, scene)?;
    let primed = prime::prime(assigned, &mut opened, scene).map_err(|error| refused(case, error))?;
    gate::judge(&mut opened, &primed.outputs, scene).map_err(|error| refused(case, error))?;
    if scene.assignment.timing.is_none() || !opened.record.is_ok() {
        return Err(Box::new(opened.record));
    }
    opened.record.execution.autotune = primed.decisions(case, &scene.operands.task);
    clock::clock(assigned, opened, scene)
        .map_err(|error| Box::new(Record::without_time(case.clone(), Status::Failed, error.to_string())))
}

/// The record of a case that could not be brought so far.
fn refused(case: &calorimeter_case::Case, error: ZooError) -> Box<Record> {
    let (status, reason) = match error {
        ZooError::Unsupported(why) => (Status::Unsupported, why),
        other => (Status::Failed, other.to_string()),
    };
    Box::new(Record::without_time(case.clone(), status, reason))
}

/// Said where f32 was asked for and tensor cores computed something coarser.
pub const TF32: &str =
    "f32 operands were rounded to TF32 (10-bit mantissas) for tensor cores: not comparable with full f32";
