//! Workers: processes that use devices, and the code of the run that manages them.
//!
//! In the run, [`pool`](Subprocess) starts, watches and replaces workers; `in_process` measures without them. In a
//! worker, `child` receives commands, `group` runs an assignment, `arm` measures a case, `input_prefetch` computes the
//! inputs of the next group meanwhile, and `inspect` examines measured cases.

pub(crate) mod arm;
pub(crate) mod autotune_cache;
mod batches;
mod buffer_placement;
mod child;
mod combine;
mod context;
mod event;
mod group;
mod group_context;
mod in_process;
mod input_prefetch;
mod inspect;
mod kernel_trace;
mod operands;
mod panics;
mod poison;
mod pool;
mod position;
mod protocol;
mod remaining;
mod repeated;
mod simulator;

pub use child::serve_if_worker;
pub use event::{EventFilter, Stage, TracedKernels, WorkerEvent, WorkerListener};
pub use in_process::InProcess;
pub use pool::Subprocess;
pub use protocol::{AssignedCase, Assignment, AssignmentPurpose, CaseSpec, WorkerCaches};
pub use repeated::RepeatedExecutor;

use calorimeter_case::Device;
use calorimeter_probe::devices::DiscoveredDevice;
use std::time::Duration;

/// Runs assignments. Every case gets a record, unless the listener interrupts the work or the assignment only traces
/// kernels.
pub trait Executor {
    /// Runs one assignment on its device.
    fn run(
        &mut self,
        assignment: &Assignment,
        device: &DiscoveredDevice,
        timeout: Duration,
        listener: &mut dyn WorkerListener,
    ) -> Result<(), WorkerError>;

    /// Creates another executor for use on several devices concurrently; `None` if that is not supported.
    fn for_concurrent_devices(&self, _devices: usize) -> Option<Box<dyn Executor + Send>> {
        None
    }

    /// Creates another executor for assignments that trace kernels; `None` if tracing is not supported.
    fn kernel_tracer(&self) -> Option<Box<dyn Executor>> {
        None
    }
}

/// Failure of the workers themselves; the failure of a case is a record, not an error.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The program cannot start itself again.
    #[error("cannot start a worker process: {0}")]
    Spawn(std::io::Error),
    /// Several workers in a row exited before they started a case.
    #[error("worker processes exit before they start a case; last output: {0}")]
    ExitedEarly(String),
    /// Workers for some devices of a fleet failed.
    #[error("{}", by_device(.0))]
    DevicesLost(Vec<(Device, WorkerError)>),
}

fn by_device(lost: &[(Device, WorkerError)]) -> String {
    lost.iter().map(|(device, why)| format!("{device}: {why}")).collect::<Vec<_>>().join("; ")
}
