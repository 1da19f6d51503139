//! Probes as works that can be timed.

use calorimeter_kernels::probes::Probe;
use calorimeter_timing::{Failure, Work};

/// A probe as the timing crate takes it.
pub struct Probed(pub Box<dyn Probe>);

impl Work for Probed {
    fn launch(&mut self) -> Result<(), Failure> {
        Ok(self.0.launch()?)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(self.0.settle()?)
    }
}
