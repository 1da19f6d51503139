//! Measurements of the checks, and conclusions from intervals.

use super::rig::{Rig, TimedWork};
use calorimeter_timing::{
    Arm, Comparison, Failure, Measurement, NullObserver, Observer, Options, ReplicateMean, TimeEstimate, measure,
};
use std::ops::RangeInclusive;
use std::time::Duration;

/// True if a check passes, `None` if inconclusive, with the measured value or reason.
pub(super) type CheckResult = Result<(Option<bool>, String), Failure>;

pub(super) fn options() -> Options {
    Options {
        precision: 0.003,
        warm_up: Duration::from_millis(50),
        max_warm_up: Duration::from_millis(500),
        min_time: Duration::from_millis(100),
        max_time: Duration::from_millis(1000),
        window: Duration::from_millis(2),
        ..Options::default()
    }
}

pub(super) fn measure_isolated(pair: &mut TimedWork) -> Result<TimeEstimate, Failure> {
    Ok(measure_observed(vec![pair], 0, &mut NullObserver)?.remove(0).time)
}

/// Compares the first work with each of the others in interleaved windows.
pub(super) fn compare_with_first(pairs: Vec<&mut TimedWork>, seed: u64) -> Result<Vec<Comparison>, Failure> {
    let measured = measure_observed(pairs, seed, &mut NullObserver)?.into_iter().skip(1);
    measured.map(|one| one.comparison.ok_or_else(|| "no comparison".into())).collect()
}

pub(super) fn compare_pair(base: &mut TimedWork, other: &mut TimedWork, seed: u64) -> Result<Comparison, Failure> {
    Ok(compare_with_first(vec![base, other], seed)?.remove(0))
}

/// Measures all works in interleaved windows, with the first as baseline and an observer of the sensors.
pub(super) fn measure_observed(
    pairs: Vec<&mut TimedWork>,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Vec<Measurement>, Failure> {
    #[cfg(test)]
    MEASURED_ARMS.set(MEASURED_ARMS.get() + pairs.len() as u32);
    let mut arms: Vec<Arm<'_>> = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let arm = Arm::new(pair.work.as_mut(), pair.stopwatch.as_mut());
        arms.push(if arms.is_empty() { arm } else { arm.against(0) });
    }
    let options = Options { seed, ..options() };
    measure(&mut arms, &options, observer).into_iter().map(|one| one.map_err(Failure::from)).collect()
}

#[cfg(test)]
thread_local! {
    static MEASURED_ARMS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Arms that this thread has measured.
#[cfg(test)]
pub(super) fn measured_arms() -> u32 {
    MEASURED_ARMS.get()
}

/// Number of steps of a chain with the target duration.
pub(super) fn spin_steps(rig: &mut dyn Rig) -> Result<u64, Failure> {
    const GUESS: u64 = 20_000;
    let took = measure_isolated(&mut rig.spin(GUESS)?)?.median;
    Ok(((GUESS as f64 * rig.spin_nanos() / took.max(1.0)) as u64).max(1_000))
}

/// True if a ratio is 1 within a tolerance; `None` if its interval extends beyond the tolerance.
pub(super) fn equals_one(lo: f64, hi: f64, tolerance: f64) -> Option<bool> {
    is_within(lo, hi, 1.0 / (1.0 + tolerance)..=1.0 + tolerance)
}

/// True if a value is within a range; `None` if only part of its interval is.
pub(super) fn is_within(lo: f64, hi: f64, range: RangeInclusive<f64>) -> Option<bool> {
    if range.contains(&lo) && range.contains(&hi) {
        Some(true)
    } else if lo > *range.end() || hi < *range.start() {
        Some(false)
    } else {
        None
    }
}

/// Adds a note to inconclusive results.
pub(super) fn with_noise_note(holds: Option<bool>, found: String) -> (Option<bool>, String) {
    (holds, if holds.is_none() { format!("{found}: inconclusive due to noise") } else { found })
}

/// Interval of a comparison, or its point estimate if there is none.
pub(super) fn interval_ends(compared: &Comparison) -> (f64, f64) {
    (compared.lo.unwrap_or(compared.ratio), compared.hi.unwrap_or(compared.ratio))
}

/// Tests whether the mean of repeated ratios is 1, and formats it.
pub(super) fn samples_equal_one(looks: &[f64], tolerance: f64) -> (Option<bool>, String) {
    let Some(ReplicateMean { mean, lo, hi, .. }) = ReplicateMean::from_values(looks) else {
        return (None, "no measurements".into());
    };
    with_noise_note(equals_one(lo, hi, tolerance), format!("{mean:.4}, 95 % interval [{lo:.4}, {hi:.4}]"))
}

/// Conjunction: false if any result is false, otherwise `None` if any is inconclusive.
pub(super) fn all_hold(answers: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let answers: Vec<Option<bool>> = answers.into_iter().collect();
    if answers.contains(&Some(false)) {
        return Some(false);
    }
    (!answers.contains(&None)).then_some(true)
}
