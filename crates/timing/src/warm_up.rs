//! Launching until clocks, caches and allocators have settled.

use crate::calibrate::timed;
use crate::{Arm, Failure, Observer, Options, median};
use std::time::Duration;

/// Windows whose medians are compared.
const GROUP: usize = 5;
/// Successive groups that must agree.
const AGREEING: usize = 3;
/// How closely they must agree.
const WITHIN: f64 = 0.03;

/// How the warm-up went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Warm {
    /// Whether windows agreed in the end.
    pub settled: bool,
    /// Energy of a launch, where the device counts it.
    pub joules: Option<f64>,
}

/// Runs windows until three successive groups agree, within the options' bounds. No other arm runs meanwhile, so this is
/// where the energy of a launch is measured.
pub fn warm_up(
    arm: &mut Arm<'_>,
    launches: u32,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Warm, Failure> {
    let start = arm.stopwatch.now();
    let elapsed = |arm: &Arm<'_>| arm.stopwatch.now().saturating_sub(start);
    let mut medians: Vec<f64> = Vec::new();
    if options.max_warm_up == Duration::ZERO || options.warm_up == Duration::ZERO {
        return Ok(Warm { settled: true, joules: None });
    }
    let mut energy = Energy::default();
    loop {
        let mut group = [0.0; GROUP];
        let mut unread = 0;
        for time in &mut group {
            let begun = arm.stopwatch.now();
            *time = timed(arm.stopwatch, arm.work, launches)? as f64;
            unread += launches;
            if arm.stopwatch.now().saturating_sub(begun) >= LONG_WINDOW {
                energy.read(observer.joules(), unread);
                unread = 0;
            }
            if elapsed(arm) >= options.max_warm_up {
                return Ok(Warm { settled: false, joules: energy.per_launch() });
            }
        }
        if unread > 0 {
            // Asking takes time too: short windows are asked about together.
            energy.read(observer.joules(), unread);
        }
        medians.extend(median(&group));
        let energy_is_known = energy.total.is_none() || energy.per_launch().is_some();
        let extra = ENERGY_TAKES.min(options.max_time / 2);
        let long_enough = elapsed(arm) >= options.warm_up + extra || energy_is_known;
        if elapsed(arm) >= options.warm_up && settled(&medians) && long_enough {
            return Ok(Warm { settled: true, joules: energy.per_launch() });
        }
    }
}

/// Energy between two moments at which the device's counter was seen to step: it is refreshed only now and then.
#[derive(Debug, Default)]
struct Energy {
    total: Option<f64>,
    launches: u64,
    readings: u32,
    first: Option<(f64, u64, u32)>,
    last: Option<(f64, u64, u32)>,
}

/// Beside this, asking a device for its energy is short.
const LONG_WINDOW: Duration = Duration::from_millis(10);
/// What the warm-up is made longer by at most where the device counts energy: its counter moves in steps. A measurement that
/// is to be short does not wait that long.
const ENERGY_TAKES: Duration = Duration::from_millis(400);
/// Fewer questions between two steps leave the edges too coarse.
const FEWEST_READINGS: u32 = 10;

impl Energy {
    fn read(&mut self, total: Option<f64>, launches: u32) {
        self.launches += u64::from(launches);
        self.readings += 1;
        if let (Some(before), Some(now)) = (self.total, total)
            && now > before
        {
            let step = Some((now, self.launches, self.readings));
            if self.first.is_none() {
                self.first = step;
            } else {
                self.last = step;
            }
        }
        self.total = total.or(self.total);
    }

    fn per_launch(&self) -> Option<f64> {
        let (first, last) = (self.first?, self.last?);
        (last.2 - first.2 >= FEWEST_READINGS).then(|| (last.0 - first.0) / (last.1 - first.1) as f64)
    }
}

fn settled(medians: &[f64]) -> bool {
    let Some(last) = medians.len().checked_sub(AGREEING).map(|from| &medians[from..]) else { return false };
    let (min, max) = last.iter().fold((f64::INFINITY, 0.0f64), |(min, max), &m| (min.min(m), max.max(m)));
    max <= min * (1.0 + WITHIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_is_taken_between_steps_of_its_counter() {
        // 2 J a launch; the counter is refreshed every fourth group of 5 launches, and starts in the middle of nowhere.
        let mut energy = Energy::default();
        for group in 1..=23u32 {
            let refreshed = f64::from(group / 4 * 4 * 5) * 2.0;
            energy.read(Some(1000.0 + refreshed), 5);
        }
        assert_eq!(energy.per_launch(), Some(2.0));
        let mut short = Energy::default();
        (1..=9u32).for_each(|group| short.read(Some(f64::from(group)), 5));
        assert_eq!(short.per_launch(), None);
        let mut absent = Energy::default();
        (0..50).for_each(|_| absent.read(None, 5));
        assert_eq!(absent.per_launch(), None);
    }
}
