//! Energy per launch in steady state, from a counter that moves in steps.
//!
//! Only differences between two observed steps of the counter are meaningful. The counter covers the whole device,
//! including its idle power.

use crate::{Arm, Failure, Observer, Options, ReplicateMean};
use serde::Serialize;
use std::time::Duration;

/// Energy per launch in joules.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LaunchEnergy {
    /// Energy between the first and the last step of the counter, divided by the launches in between.
    pub joules: f64,
    /// Lower end of the 95 % interval, absent if the counter stepped too rarely.
    pub lo: Option<f64>,
    /// Upper end of the 95 % interval.
    pub hi: Option<f64>,
}

/// Duration of the energy measurement. Counters step at least ten times per second.
const MEASURED_TIME: Duration = Duration::from_millis(500);
/// Interval between readings: long compared with a query, short enough to notice a step promptly.
const READ_INTERVAL: Duration = Duration::from_millis(10);
/// Minimum number of readings between the first and the last step; with fewer, their timing is too coarse.
const MIN_READINGS: u32 = 10;
/// Number of equal parts whose energies give the interval.
const INTERVAL_PARTS: usize = 8;

/// Measures energy while the arm, which has just run by itself, continues at its own pace: for half a second, or half
/// of the maximum time if that is less. Returns at once if there is no counter, energy is disabled, or the time is too
/// short for a result.
pub(crate) fn measure_energy(
    arm: &mut Arm<'_>,
    launches: u32,
    options: &Options,
    observer: &mut dyn Observer,
) -> Result<Option<LaunchEnergy>, Failure> {
    let duration = MEASURED_TIME.min(options.max_time / 2);
    let enabled = options.energy && duration > READ_INTERVAL * MIN_READINGS;
    let Some(joules) = enabled.then(|| observer.joules()).flatten() else { return Ok(None) };
    let mut counter = EnergyCounter::new(joules);
    let begun = arm.stopwatch.now();
    let elapsed = |arm: &Arm<'_>| arm.stopwatch.now().saturating_sub(begun);
    arm.stopwatch.load(arm.work, launches)?;
    let share = READ_INTERVAL.as_secs_f64() / elapsed(arm).as_secs_f64().max(1e-9);
    let unit = arm.stopwatch.launch_multiple().max(1);
    let burst = ((f64::from(launches) * share) as u32).clamp(1, launches.saturating_mul(100)).next_multiple_of(unit);
    counter.read(observer.joules(), launches);
    while elapsed(arm) < duration && !observer.interrupted() {
        arm.stopwatch.load(arm.work, burst)?;
        counter.read(observer.joules(), burst);
    }
    Ok(counter.energy())
}

/// Readings of an energy counter.
struct EnergyCounter {
    joules: f64,
    launches: u64,
    readings: u32,
    /// Readings that were higher than their predecessor.
    steps: Vec<CounterStep>,
}

#[derive(Debug, Clone, Copy)]
struct CounterStep {
    joules: f64,
    launches: u64,
    readings: u32,
}

impl EnergyCounter {
    fn new(joules: f64) -> Self {
        Self { joules, launches: 0, readings: 0, steps: Vec::new() }
    }

    /// Adds a reading, `launches` after the previous one.
    fn read(&mut self, joules: Option<f64>, launches: u32) {
        self.launches += u64::from(launches);
        self.readings += 1;
        let Some(joules) = joules else { return };
        if joules > self.joules {
            self.steps.push(CounterStep { joules, launches: self.launches, readings: self.readings });
        }
        self.joules = joules;
    }

    /// Energy between the first and the last step; the interval is Student's t over equal parts.
    fn energy(&self) -> Option<LaunchEnergy> {
        let (first, last) = (self.steps.first()?, self.steps.last()?);
        if last.readings - first.readings < MIN_READINGS {
            return None;
        }
        let between =
            |from: &CounterStep, to: &CounterStep| (to.joules - from.joules) / (to.launches - from.launches) as f64;
        let joules = between(first, last);
        let parts = INTERVAL_PARTS.min(self.steps.len() - 1);
        let edge = |part: usize| &self.steps[part * (self.steps.len() - 1) / parts];
        let used: Vec<f64> = (0..parts).map(|part| between(edge(part), edge(part + 1))).collect();
        // A step that is noticed late makes one part larger and the next smaller, but does not change the total. The
        // center is therefore the total.
        let across = ReplicateMean::from_values(&used);
        let end = |end: f64, mean: f64| joules * end / mean;
        // The first and the last step are each known to one reading; this is the resulting relative error of the total.
        let edges = 1.0 / f64::from(2 * (last.readings - first.readings));
        Some(LaunchEnergy {
            joules,
            lo: across.map(|across| end(across.lo, across.mean) * (1.0 - edges)),
            hi: across.map(|across| end(across.hi, across.mean) * (1.0 + edges)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MockClock, MockWork, Script, Stopwatch, measure};

    /// Counter refreshed ten times a second, on a device that draws 700 W, and less until it is warm.
    struct Meter {
        clock: MockClock,
        counts: bool,
    }

    /// Time within the warm-up.
    const WARM_AFTER: f64 = 0.15;

    impl Observer for Meter {
        fn joules(&mut self) -> Option<f64> {
            let refreshed = (self.clock.now().as_secs_f64() * 10.0).floor() / 10.0;
            let used = 300.0 * refreshed.min(WARM_AFTER) + 700.0 * (refreshed - WARM_AFTER).max(0.0);
            self.counts.then_some(5000.0 + used)
        }
    }

    /// Energy per launch, and the seconds that measuring took.
    fn measured(nanos: f64, counts: bool, options: &Options) -> (Option<LaunchEnergy>, f64) {
        let (mut work, mut clock) = MockWork::pair(Script { nanos, noise: 0.01, ..Script::default() });
        let mut meter = Meter { clock: clock.clone(), counts };
        let measured = measure(&mut [Arm::new(&mut work, &mut clock)], options, &mut meter).remove(0).unwrap();
        (measured.energy, clock.now().as_secs_f64())
    }

    #[test]
    fn energy_interval_covers_steady_state() {
        for nanos in [9_000.0, 700_000.0, 23_000_000.0] {
            let energy = measured(nanos, true, &Options::default()).0.unwrap();
            let (truth, lo, hi) = (700.0 * nanos / 1e9, energy.lo.unwrap(), energy.hi.unwrap());
            assert!((energy.joules / truth - 1.0).abs() < 0.04, "{energy:?} {truth}");
            assert!(lo < truth && truth < hi && hi / lo < 1.6, "{energy:?} {truth}");
        }
    }

    #[test]
    fn energy_takes_half_a_second_if_enabled() {
        let options = Options { max_time: Duration::from_secs(3), ..Options::default() };
        let ((none, without), (some, with)) = (measured(9_000.0, false, &options), measured(9_000.0, true, &options));
        assert!(none.is_none() && some.is_some());
        assert!((0.45..0.6).contains(&(with - without)), "{with} {without}");
        let hurried = Options { max_time: Duration::from_millis(200), ..options.clone() };
        assert_eq!(measured(9_000.0, true, &hurried), measured(9_000.0, false, &hurried));
        let unwanted = measured(9_000.0, true, &Options { energy: false, ..options });
        assert_eq!(unwanted, (None, without));
    }

    #[test]
    fn energy_is_measured_between_counter_steps() {
        // 2 J per launch. The counter is refreshed at every fourth reading of 5 launches and starts at an arbitrary
        // value.
        let read = |readings: u32| {
            let mut counter = EnergyCounter::new(1000.0);
            for reading in 1..=readings {
                let refreshed = f64::from(reading / 4 * 4 * 5) * 2.0;
                counter.read(Some(1000.0 + refreshed), 5);
            }
            counter.energy()
        };
        let energy = read(23).unwrap();
        // Half a reading out of sixteen in either direction.
        assert_eq!((energy.joules, energy.lo, energy.hi), (2.0, Some(2.0 - 1.0 / 16.0), Some(2.0 + 1.0 / 16.0)));
        assert_eq!(read(9), None);
    }
}
