//! Workers: the processes that touch devices, and the part of a run that looks after them.
//!
//! In the run: [`pool`](Subprocess) starts, watches and replaces workers; `in_process` does without them. In a worker:
//! `child` takes orders, `group` works on an assignment, `arm` brings one case to its time, `ahead` makes what the next group
//! computes with meanwhile, `inspect` looks at a case afterwards.

mod ahead;
pub(crate) mod arm;
mod batches;
mod child;
mod context;
mod event;
mod group;
mod in_process;
mod inspect;
mod kernels;
mod launches;
mod operands;
mod panics;
mod places;
mod poison;
mod pool;
mod position;
mod protocol;
mod remaining;
mod scene;
mod together;
pub(crate) mod tuned;

pub use child::serve_if_worker;
pub use event::{Event, Listener, SeenKernels, Stage};
pub use in_process::InProcess;
pub use launches::Launches;
pub use pool::Subprocess;
pub use protocol::{AssignedCase, Assignment, DeviceFacts, Kept, Next};

use crate::devices::DiscoveredDevice;
use calorimeter_case::Device;
use std::time::Duration;

/// Works on assignments. Every case of an assignment gets a record, unless the listener interrupts it.
pub trait Executor {
    /// Measures one assignment on its device.
    fn run(
        &mut self,
        assignment: &Assignment,
        device: &DiscoveredDevice,
        timeout: Duration,
        listener: &mut dyn Listener,
    ) -> Result<(), WorkerError>;

    /// Another one of as many as there are devices that work at the same time; nothing where that cannot be.
    fn another(&self, _devices: usize) -> Option<Box<dyn Executor + Send>> {
        None
    }

    /// Another one that only looks at kernels, where that is possible: what it is given ends without records.
    fn looker(&self) -> Option<Box<dyn Executor>> {
        None
    }
}

/// Why workers cannot be had at all; what happens to one case is a record, not an error.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The program cannot start itself again.
    #[error("cannot start a worker process: {0}")]
    Spawn(std::io::Error),
    /// Worker after worker ends before it touches a case.
    #[error("worker processes end before they touch a case; the last one said: {0}")]
    Stillborn(String),
    /// Some of several devices are lost.
    #[error("{}", told(.0))]
    Lost(Vec<(Device, WorkerError)>),
}

fn told(lost: &[(Device, WorkerError)]) -> String {
    lost.iter().map(|(device, why)| format!("{device}: {why}")).collect::<Vec<_>>().join("; ")
}
