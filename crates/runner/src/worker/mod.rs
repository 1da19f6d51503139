//! Workers: the processes that touch devices, and the part of a run that looks after them.

mod bench;
mod fusion;
mod in_process;
mod iterations;
mod look;
mod measured;
mod memory;
mod panics;
mod position;
mod process;
mod profile;
mod protocol;
mod ranges;
mod ready;
mod sensors;
mod subprocess;
mod traffic;
mod tuning;

pub use in_process::InProcess;
pub use process::serve_if_worker;
pub use protocol::{Assignment, DeviceFacts, Event, Keep, Seen, Stage};
pub(crate) use ready::{Job, TF32};
pub use subprocess::Subprocess;

use crate::devices::DiscoveredDevice;
use calorimeter_sinks::Record;
use std::time::Duration;

/// Watches an assignment being worked on.
pub trait Watch {
    /// The case at this position is about to be touched.
    fn touch(&mut self, case: usize, stage: Stage);
    /// The case at this position has ended.
    fn record(&mut self, case: usize, record: Record);
    /// The kernels of the case at this position were looked at.
    fn seen(&mut self, _case: usize, _seen: Seen) {}
    /// Whether to stop: cases without a record are left for another time.
    fn interrupted(&self) -> bool;
}

/// Works on assignments. Every case of an assignment gets a record, unless the watch interrupts it.
pub trait Executor {
    /// Measures one assignment on its device.
    fn run(
        &mut self,
        assignment: &Assignment,
        device: &DiscoveredDevice,
        timeout: Duration,
        watch: &mut dyn Watch,
    ) -> Result<(), WorkerError>;

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
}
