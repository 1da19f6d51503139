//! Comparison of two candidates in one call.

use crate::{Arm, Closure, Comparison, Measurement, NullObserver, Options, TimingError, WallClock, measure};
use serde::Serialize;
use std::fmt;

/// Two candidates measured interleaved. Serialized as JSON, absent values are `null`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PairMeasurement {
    /// Measurement of the baseline.
    pub baseline: Measurement,
    /// Measurement of the candidate.
    pub candidate: Measurement,
    /// Speed-up of the candidate over the baseline.
    pub comparison: Comparison,
}

impl PairMeasurement {
    /// True if both times and the speed-up reached the requested precision.
    pub fn converged(&self) -> bool {
        self.baseline.converged && self.candidate.converged
    }
}

/// Formats both times and the speed-up: `12.34 µs ±0.5% against 9.35 µs ±0.4%: 1.320x [1.302, 1.341] FASTER`.
impl fmt::Display for PairMeasurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} against {}: {}", self.candidate.time, self.baseline.time, self.comparison)
    }
}

/// Measures two closures interleaved and returns the speed-up of the second. Their work must be complete when they
/// return. Results are hidden from the optimizer; inputs should pass through [`std::hint::black_box`].
///
/// ```
/// use calorimeter_timing::{Options, compare};
/// use std::{hint::black_box, time::Duration};
///
/// let options = Options::default().with_max_time(Duration::from_millis(50)).with_warm_up(Duration::ZERO);
/// let to = |end: u64| move || (0..black_box(end)).fold(0, |sum, i| sum ^ i * i);
/// let compared = compare(to(20_000), to(10_000), &options)?;
/// println!("{}", compared.candidate.time); // 3.124 µs ±0.3%
/// println!("{}", compared.comparison); // 2.001x [1.993, 2.012] FASTER
/// # Ok::<(), calorimeter_timing::TimingError>(())
/// ```
pub fn compare<T, U>(
    baseline: impl FnMut() -> T + Send,
    candidate: impl FnMut() -> U + Send,
    options: &Options,
) -> Result<PairMeasurement, TimingError> {
    let (mut baseline, mut candidate) = (Closure::new(baseline), Closure::new(candidate));
    let (mut clock, mut other_clock) = (WallClock::synchronous(), WallClock::synchronous());
    compare_arms(Arm::new(&mut baseline, &mut clock), Arm::new(&mut candidate, &mut other_clock), options)
}

/// Compares two arms, each with its own stopwatch: kernels on a device, or a closure and a kernel.
///
/// ```
/// use calorimeter_timing::{Arm, MockWork, Options, Script, compare_arms};
///
/// let (mut slow, mut clock) = MockWork::pair(Script { nanos: 20_000.0, ..Script::default() });
/// let (mut fast, mut other_clock) = MockWork::pair(Script { nanos: 10_000.0, ..Script::default() });
/// let (slow, fast) = (Arm::new(&mut slow, &mut clock), Arm::new(&mut fast, &mut other_clock));
/// let compared = compare_arms(slow, fast, &Options::default())?;
/// assert_eq!(compared.to_string(), "10.00 µs ±0.00% against 20.00 µs ±0.00%: 2.000x [2.000, 2.000] FASTER");
/// # Ok::<(), calorimeter_timing::TimingError>(())
/// ```
pub fn compare_arms<'a>(
    baseline: Arm<'a>,
    candidate: Arm<'a>,
    options: &Options,
) -> Result<PairMeasurement, TimingError> {
    let mut measured = measure(&mut [baseline, candidate.against(0)], options, &mut NullObserver).into_iter();
    let mut next = || measured.next().unwrap_or(Err(TimingError::Interrupted));
    let (baseline, candidate) = (next()?, next()?);
    let comparison = candidate.comparison.ok_or(TimingError::NoRatio)?;
    Ok(PairMeasurement { baseline, candidate, comparison })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MockWork, Script, TimeEstimate, Verdict, Window};
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn second_closure_is_compared_with_first() {
        let options = Options { max_time: Duration::from_millis(20), warm_up: Duration::ZERO, ..Options::default() };
        let sleep = |micros| move || std::thread::sleep(Duration::from_micros(micros));
        let compared = compare(sleep(4_000), sleep(10), &options).unwrap();
        assert!(compared.comparison.ratio > 2.0, "{compared}");
    }

    #[test]
    fn failed_arm_fails_the_comparison() {
        let (mut good, mut clock) = MockWork::pair(Script::default());
        let (mut bad, mut other_clock) = MockWork::pair(Script { fails_after: Some(10), ..Script::default() });
        let (good, bad) = (Arm::new(&mut good, &mut clock), Arm::new(&mut bad, &mut other_clock));
        let error = compare_arms(good, bad, &Options::default()).unwrap_err();
        let TimingError::Failed(cause) = &error else { panic!("{error:?}") };
        assert_eq!(cause.to_string(), "the scripted work failed");
    }

    #[test]
    fn json_contains_the_public_fields() {
        let pair = |nanos| MockWork::pair(Script { nanos, noise: 0.01, ..Script::default() });
        let ((mut a, mut clock), (mut b, mut other_clock)) = (pair(20_000.0), pair(10_000.0));
        let (a, b) = (Arm::new(&mut a, &mut clock), Arm::new(&mut b, &mut other_clock));
        let compared = compare_arms(a, b, &Options::default()).unwrap();
        let json = serde_json::to_value(&compared).unwrap();
        let Comparison { ratio, lo, hi, .. } = compared.comparison;
        let expected = json!({
            "ratio": ratio, "lo": lo, "hi": hi, "sound": true, "verdict": "FASTER", "rounds_needed": null,
        });
        assert_eq!((&json["comparison"], &json["candidate"]["comparison"]), (&expected, &expected));
        let TimeEstimate { median, lo, hi, .. } = compared.baseline.time;
        assert_eq!(json["baseline"]["time"], json!({ "median": median, "lo": lo, "hi": hi, "sound": true }));
        let Window { launches, nanos } = compared.baseline.windows[0];
        assert_eq!(json["baseline"]["windows"][0], json!({ "launches": launches, "nanos": nanos }));
        assert!(json["baseline"]["comparison"].is_null() && json["baseline"]["energy"].is_null());
        assert_eq!(json["baseline"]["scatter"]["count"], compared.baseline.windows.len());
    }

    #[test]
    fn explicit_baseline_is_overridden() {
        let pair = || MockWork::pair(Script { noise: 0.001, ..Script::default() });
        let ((mut a, mut clock), (mut b, mut other_clock)) = (pair(), pair());
        let (a, b) = (Arm::new(&mut a, &mut clock), Arm::new(&mut b, &mut other_clock).against(7));
        assert_eq!(compare_arms(a, b, &Options::default()).unwrap().comparison.verdict, Verdict::Same);
    }
}
