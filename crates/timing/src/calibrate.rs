//! How many launches a window holds.

use crate::{Arm, Failure, Stopwatch, TimingError, Work};
use std::time::Duration;

/// More launches than this fill any device's queue.
const MOST: u32 = 100_000;

/// The fewest launches, a multiple of the stopwatch's unit, whose window lasts at least as long as wanted by the stopwatch,
/// and as long as the stopwatch needs by the host's clock: a host that enqueues slowly leaves the device idle anyway.
///
/// `from` so many launches on: 1, or what was enough before.
pub fn calibrate(arm: &mut Arm<'_>, window: Duration, from: u32) -> Result<u32, TimingError> {
    let wanted = (window.as_nanos() as u64).max(1);
    let least = arm.stopwatch.least_window().as_nanos() as u64;
    let unit = arm.stopwatch.unit().max(1);
    let mut launches = from.max(1).next_multiple_of(unit);
    loop {
        let begun = arm.stopwatch.now();
        let nanos = timed(arm.stopwatch, arm.work, launches)?;
        let passed = (arm.stopwatch.now().saturating_sub(begun).as_nanos() as u64).max(nanos);
        // A device that is idle half of the time anyway gains nothing from longer windows.
        let least = if nanos < passed / 2 { least / 2 } else { least };
        if (nanos >= wanted && passed >= least) || launches >= MOST {
            return if nanos == 0 {
                Err(TimingError::NoTime { clock: arm.stopwatch.name(), launches })
            } else {
                Ok(launches)
            };
        }
        // Aim a little above, never more than tenfold at a time: short windows are mostly overhead.
        let aim = |wanted: u64, lasted: u64| (u64::from(launches) * wanted * 6 / 5).div_ceil(lasted.max(1));
        let aim = aim(wanted, nanos)
            .max(aim(least, passed))
            .clamp(u64::from(launches) + 1, u64::from(launches) * 10)
            .min(u64::from(MOST)) as u32;
        launches = aim.next_multiple_of(unit);
    }
}

/// One window, waited for.
pub fn timed(stopwatch: &mut dyn Stopwatch, work: &mut dyn Work, launches: u32) -> Result<u64, Failure> {
    stopwatch.window(work, launches)?.resolve()
}
