//! Measurement of one work in one call.

use crate::{Arm, Measurement, NullObserver, Options, Stopwatch, TimingError, Work, measure};

/// Measures one work, without a baseline and without an observer. [`measure`] takes several works and an observer.
///
/// ```
/// use calorimeter_timing::{Closure, Options, WallClock, time_one};
/// use std::{hint::black_box, time::Duration};
///
/// let mut work = Closure::new(|| (0..black_box(20_000u64)).fold(0, |sum, i| sum ^ i * i));
/// let options = Options::default().with_max_time(Duration::from_millis(50)).with_warm_up(Duration::ZERO);
/// let measurement = time_one(&mut work, &mut WallClock::synchronous(), &options)?;
/// println!("{}", measurement.time); // 6.251 µs ±0.3%
/// # Ok::<(), calorimeter_timing::TimingError>(())
/// ```
pub fn time_one(work: &mut dyn Work, clock: &mut dyn Stopwatch, options: &Options) -> Result<Measurement, TimingError> {
    let mut measured = measure(&mut [Arm::new(work, clock)], options, &mut NullObserver);
    measured.pop().unwrap_or(Err(TimingError::Interrupted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MockWork, Script};

    #[test]
    fn result_is_that_of_a_single_arm() {
        let script = Script { noise: 0.01, ..Script::default() };
        let (mut work, mut clock) = MockWork::pair(script.clone());
        let measured = time_one(&mut work, &mut clock, &Options::default()).unwrap();
        let (mut work, mut clock) = MockWork::pair(script);
        let mut arms = [Arm::new(&mut work, &mut clock)];
        assert_eq!(measured, measure(&mut arms, &Options::default(), &mut NullObserver).remove(0).unwrap());
    }

    #[test]
    fn failure_of_the_work_is_returned() {
        let (mut work, mut clock) = MockWork::pair(Script { fails_after: Some(10), ..Script::default() });
        let outcome = time_one(&mut work, &mut clock, &Options::default());
        assert!(matches!(outcome, Err(TimingError::Failed(_))), "{outcome:?}");
    }
}
