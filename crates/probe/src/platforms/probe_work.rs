//! Adapter of probes for the timing crate.

use calorimeter_kernels::probes::Probe;
use calorimeter_timing::{Failure, Work};

/// Probe as work for the timing crate.
pub struct ProbeWork(pub Box<dyn Probe>);

impl Work for ProbeWork {
    fn launch(&mut self) -> Result<(), Failure> {
        Ok(self.0.launch()?)
    }

    fn synchronize(&mut self) -> Result<(), Failure> {
        Ok(self.0.synchronize()?)
    }
}
