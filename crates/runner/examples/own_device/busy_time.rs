//! Stopwatch of a device that counts its busy time.

use calorimeter_timing::{Failure, Overhead, Reading, Stopwatch, Work};
use std::sync::atomic::{AtomicU64, Ordering};

// ANCHOR: stopwatch
/// Reads the busy-time counter of a device, in nanoseconds.
pub(crate) struct BusyTime(pub &'static AtomicU64);

impl Stopwatch for BusyTime {
    fn name(&self) -> &'static str {
        "busy-time"
    }

    fn overhead(&self) -> Overhead {
        Overhead::Excluded
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        work.synchronize()?;
        let before = self.0.load(Ordering::Acquire);
        for _ in 0..launches {
            work.launch()?;
        }
        work.synchronize()?;
        Ok(Reading::Ready(self.0.load(Ordering::Acquire) - before))
    }
}
// ANCHOR_END: stopwatch
