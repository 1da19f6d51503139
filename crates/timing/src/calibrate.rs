//! Calibration of the number of launches per window.

use crate::{Arm, Failure, Stopwatch, TimingError, Work};
use std::time::Duration;

/// Maximum number of launches, which fills the queue of any device.
const MAX_LAUNCHES: u32 = 100_000;

/// Finds the minimum number of launches, a multiple of the stopwatch's unit, whose window is long enough: `window` by
/// the stopwatch, and the stopwatch's own minimum by the host's clock. A host that enqueues slowly leaves the device
/// idle anyway.
///
/// The search starts at `from` launches: 1, or a previous result.
pub(crate) fn calibrate(arm: &mut Arm<'_>, window: Duration, from: u32) -> Result<u32, TimingError> {
    let required = (window.as_nanos() as u64).max(1);
    let min_elapsed = arm.stopwatch.min_window().as_nanos() as u64;
    let unit = arm.stopwatch.launch_multiple().max(1);
    let mut launches = from.max(1).next_multiple_of(unit);
    loop {
        let begun = arm.stopwatch.now();
        let nanos = time_window(arm.stopwatch, arm.work, launches)?;
        let elapsed = (arm.stopwatch.now().saturating_sub(begun).as_nanos() as u64).max(nanos);
        // A device that is idle half of the time does not benefit from longer windows.
        let min_elapsed = if nanos < elapsed / 2 { min_elapsed / 2 } else { min_elapsed };
        if (nanos >= required && elapsed >= min_elapsed) || launches >= MAX_LAUNCHES {
            return if nanos == 0 {
                Err(TimingError::NoTime { clock: arm.stopwatch.name(), launches })
            } else {
                Ok(launches)
            };
        }
        // Targets 1.2 times the required duration and grows at most tenfold per step: short windows are mostly
        // overhead.
        let aim = |required: u64, duration: u64| (u64::from(launches) * required * 6 / 5).div_ceil(duration.max(1));
        let aim = aim(required, nanos)
            .max(aim(min_elapsed, elapsed))
            .clamp(u64::from(launches) + 1, u64::from(launches) * 10)
            .min(u64::from(MAX_LAUNCHES)) as u32;
        launches = aim.next_multiple_of(unit);
    }
}

/// Times one window and waits for it.
pub(crate) fn time_window(stopwatch: &mut dyn Stopwatch, work: &mut dyn Work, launches: u32) -> Result<u64, Failure> {
    stopwatch.window(work, launches)?.resolve()
}
