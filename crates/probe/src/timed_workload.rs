//! Workload as work that can be timed.

use calorimeter_case::Clock;
use calorimeter_timing::{Failure, Work};
use calorimeter_zoo::{Output, Workload, ZooError};

/// Adapter of a workload for the timing crate.
pub struct TimedWorkload(pub Box<dyn Workload>);

impl TimedWorkload {
    /// Frees the workload; later launches fail.
    pub fn close(&mut self) {
        self.0 = Box::new(ClosedWorkload);
    }
}

/// Replacement of a workload that was closed.
struct ClosedWorkload;

impl Workload for ClosedWorkload {
    fn launch(&mut self) -> Result<(), ZooError> {
        Err(ZooError::Device("its workload is closed".into()))
    }

    fn synchronize(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        self.launch().map(|()| Vec::new())
    }
}

impl Work for TimedWorkload {
    fn launch(&mut self) -> Result<(), Failure> {
        Ok(self.0.launch()?)
    }

    fn synchronize(&mut self) -> Result<(), Failure> {
        Ok(self.0.synchronize()?)
    }

    fn time_remotely(&mut self, launches: u32, clock: Clock) -> Result<Option<u64>, Failure> {
        Ok(self.0.remote_passes().map(|passes| passes.time(launches, clock)).transpose()?)
    }

    fn trace_remotely(&mut self, launches: u32) -> Result<Vec<(String, u64)>, Failure> {
        let passes = self.0.remote_passes().ok_or("this process runs the launches")?;
        Ok(passes.kernel_calls(launches)?)
    }
}
