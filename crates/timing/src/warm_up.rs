//! Warm-up until clocks, caches and allocators reach a plateau.

use crate::calibrate::time_window;
use crate::{Arm, Failure, Options, median};
use std::time::Duration;

/// Windows per group; the medians of groups are compared.
const WINDOWS_PER_GROUP: usize = 5;
/// Successive groups that must agree.
const REQUIRED_GROUPS: usize = 3;
/// Maximum relative difference of agreeing groups.
const GROUP_TOLERANCE: f64 = 0.03;

/// Runs windows for at least `min_duration` and until three successive groups agree, within the limits of the options.
/// Returns whether they agreed. No other arm runs meanwhile. Windows are shortened if the minimum number of them would
/// exceed that time, but not below the length of measured windows.
pub(crate) fn warm_up(
    arm: &mut Arm<'_>,
    mut launches: u32,
    min_duration: Duration,
    options: &Options,
) -> Result<bool, Failure> {
    let start = arm.stopwatch.now();
    let elapsed = |arm: &Arm<'_>| arm.stopwatch.now().saturating_sub(start);
    let mut medians: Vec<f64> = Vec::new();
    if options.max_warm_up == Duration::ZERO || options.warm_up == Duration::ZERO {
        return Ok(true);
    }
    let share_of = |time: Duration| time / (WINDOWS_PER_GROUP * REQUIRED_GROUPS) as u32;
    let (share, unit) = (
        share_of(min_duration).max(options.window.min(share_of(options.warm_up))),
        arm.stopwatch.launch_multiple().max(1),
    );
    loop {
        let mut group = [0.0; WINDOWS_PER_GROUP];
        for time in &mut group {
            let begun = elapsed(arm);
            *time = time_window(arm.stopwatch, arm.work, launches)? as f64 / f64::from(launches);
            let ended = elapsed(arm);
            if ended >= options.max_warm_up {
                return Ok(false);
            }
            let fraction = share.as_secs_f64() / (ended - begun).as_secs_f64().max(1e-9);
            if fraction < 1.0 {
                launches = ((f64::from(launches) * fraction) as u32).max(1).next_multiple_of(unit).min(launches);
            }
        }
        medians.extend(median(&group));
        if elapsed(arm) >= min_duration && reached_plateau(&medians) {
            return Ok(true);
        }
    }
}

fn reached_plateau(medians: &[f64]) -> bool {
    let Some(last) = medians.len().checked_sub(REQUIRED_GROUPS).map(|from| &medians[from..]) else { return false };
    let (min, max) = last.iter().fold((f64::INFINITY, 0.0f64), |(min, max), &m| (min.min(m), max.max(m)));
    max <= min * (1.0 + GROUP_TOLERANCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MockWork, Script, Stopwatch};

    #[test]
    fn long_windows_are_shortened() {
        let millis = Duration::from_millis;
        let lasted = |launches: u32, nanos: f64, least: Duration| {
            let (mut work, mut clock) = MockWork::pair(Script { nanos, ..Script::default() });
            assert!(warm_up(&mut Arm::new(&mut work, &mut clock), launches, least, &Options::default()).unwrap());
            clock.now()
        };
        // Fifteen windows of 20 ms, and fifteen launches of 20 ms, which cannot be shortened.
        let (cut, whole) = (lasted(2000, 10e3, millis(100)), lasted(1, 20e6, millis(100)));
        assert!(cut >= millis(100) && cut < millis(150), "{cut:?}");
        assert!(whole >= millis(300), "{whole:?}");
        // Without a minimum, fourteen windows of a millisecond follow the first: single launches would be too noisy.
        let least = lasted(2000, 10e3, Duration::ZERO);
        assert!(least >= millis(33) && least < millis(50), "{least:?}");
    }
}
