//! Interleaved rounds: one window of every arm in random order. An arm retires when it is precise enough.

use crate::arm_state::{ArmState, measure_interleaved_window};
use crate::calibrate::calibrate;
use crate::energy;
use crate::estimate::per_launch;
use crate::isolated;
use crate::warm_up::warm_up;
use crate::{
    Arm, Comparison, DeviceState, LaunchEnergy, Observer, Options, Phase, ScatterStats, StopRule, TimeEstimate,
    TimingError, Verdict, Window, median,
};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use std::time::Duration;

/// Measurement of one arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Measurement {
    /// Windows from which `time` is computed, in order.
    pub windows: Vec<Window>,
    /// Device state at the end of each of these windows; empty if not available.
    pub states: Vec<DeviceState>,
    /// Duration of each of these windows including the gaps that the clock excludes; empty if it excludes none.
    pub spans: Vec<u64>,
    /// Nanoseconds per launch. If the device was throttled: the isolated time after a lead-in of the arm's own load.
    /// Otherwise the interleaved time.
    pub time: TimeEstimate,
    /// Interleaved time, if `time` is the isolated one.
    pub interleaved: Option<TimeEstimate>,
    /// Speed-up over the baseline, if the arm has a measured one: from paired rounds, or from the isolated times if
    /// both have one.
    pub comparison: Option<Comparison>,
    /// Speed-up from paired rounds, at the clock that results from all arms, if `comparison` is from isolated times.
    pub interleaved_comparison: Option<Comparison>,
    /// True if time and speed-up reached the requested precision.
    pub converged: bool,
    /// True if successive windows agreed before measuring began.
    pub reached_plateau: bool,
    /// Windows discarded because a kernel was compiled or tuned inside them.
    pub discarded: u32,
    /// Rounds repeated because the device was throttled.
    pub repeated_rounds: u32,
    /// Rounds retained although the device was throttled, because the limit of repeats was reached.
    pub throttled_rounds: u32,
    /// Energy of a launch while the arm runs by itself, if the device counts it; like `time` after a lead-in of its own
    /// load.
    pub energy: Option<LaunchEnergy>,
    /// Scatter of the windows.
    pub scatter: ScatterStats,
}

/// At most one in this number of rounds is repeated.
const REPEAT_DIVISOR: u32 = 5;

/// Measures arms interleaved. An arm that fails drops out; the others continue.
///
/// ```
/// use calorimeter_timing::{Arm, Closure, NullObserver, Options, WallClock, measure};
/// use std::time::Duration;
///
/// let mut works = [1, 2, 3].map(|times| Closure::new(move || (0..1000 * times).fold(0u64, |sum, i| sum ^ i * i)));
/// let mut clocks = [(); 3].map(|()| WallClock::synchronous());
/// let arms = works.iter_mut().zip(&mut clocks).map(|(work, clock)| Arm::new(work, clock));
/// let mut arms: Vec<Arm> = arms.enumerate().map(|(i, arm)| if i == 0 { arm } else { arm.against(0) }).collect();
/// let options = Options { max_time: Duration::from_millis(50), warm_up: Duration::ZERO, ..Options::default() };
/// for measured in measure(&mut arms, &options, &mut NullObserver) {
///     println!("{}", measured?.time);
/// }
/// # Ok::<(), calorimeter_timing::TimingError>(())
/// ```
pub fn measure(
    arms: &mut [Arm<'_>],
    options: &Options,
    observer: &mut dyn Observer,
) -> Vec<Result<Measurement, TimingError>> {
    let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
    let mut lanes: Vec<ArmState> = Vec::with_capacity(arms.len());
    let count = arms.len();
    for (index, arm) in arms.iter_mut().enumerate() {
        lanes.push(match check_arm(index, arm, count, options) {
            Ok(()) => prepare_arm(index, arm, options, observer),
            Err(error) => ArmState { failure: Some(error), ..ArmState::new() },
        });
    }

    let mut rule = StopRule::new(options, arms.len());
    let start = now(arms, &lanes);
    // Resets the observer: throttling during warm-up affects no round.
    observer.must_repeat_round();
    let (mut rounds, mut repeated, mut spoilt) = (0, 0, 0);
    let mut order = active_arms(arms, &lanes);
    while !order.is_empty() && !observer.interrupted() {
        order.shuffle(&mut rng);
        for &index in &order {
            observer.before_launch(index, Phase::Measure);
            let single = order.len() == 1;
            let begun = arms[index].stopwatch.now();
            if let Err(failure) =
                measure_interleaved_window(&mut arms[index], &mut lanes[index], single, &mut rng, observer)
            {
                lanes[index].failure = Some(failure);
            }
            lanes[index].time_spent += arms[index].stopwatch.now().saturating_sub(begun);
        }
        if observer.must_repeat_round() {
            // Repeats the whole round, so that windows stay paired. The number of repeats is limited, or a hot device
            // would never finish.
            if repeated <= rounds / REPEAT_DIVISOR {
                repeated += 1;
                order.iter().for_each(|&index| lanes[index].pop_window());
                order = active_arms(arms, &lanes);
                continue;
            }
            spoilt += 1;
        }
        rounds += 1;
        observer.after_round(rounds);
        let elapsed = now(arms, &lanes).saturating_sub(start);
        let looks = rule.is_checkpoint(rounds, elapsed);
        for &index in &order {
            lanes[index].retired |= rule.is_arm_time_spent(rounds, lanes[index].time_spent)
                || (looks && is_precise(arms, &lanes, index, options, &rule));
        }
        if rule.is_exhausted(rounds, elapsed) {
            break;
        }
        order = active_arms(arms, &lanes);
    }
    let blocks = isolated::measure_isolated(arms, &mut lanes, options, &mut rng, observer);
    spoilt += u32::from(!blocks.is_empty() && observer.must_repeat_round());
    conclude(arms, lanes, blocks, options, repeated, spoilt)
}

/// Arms of the next round: those that have not retired, and their baselines.
fn active_arms(arms: &[Arm<'_>], lanes: &[ArmState]) -> Vec<usize> {
    let alive = |index: usize| lanes[index].failure.is_none();
    let open = |index: usize| alive(index) && !lanes[index].retired;
    let awaited = |index: usize| (0..arms.len()).any(|other| open(other) && arms[other].baseline == Some(index));
    (0..arms.len()).filter(|&index| open(index) || (alive(index) && awaited(index))).collect()
}

fn now(arms: &[Arm<'_>], lanes: &[ArmState]) -> Duration {
    let alive = arms.iter().zip(lanes).find(|(_, lane)| lane.failure.is_none());
    alive.map_or_else(Default::default, |(arm, _)| arm.stopwatch.now())
}

/// Checks an arm before anything is launched.
fn check_arm(arm: usize, one: &Arm<'_>, arms: usize, options: &Options) -> Result<(), TimingError> {
    options.check()?;
    match one.baseline {
        Some(baseline) if baseline >= arms || baseline == arm => {
            Err(TimingError::InvalidBaseline { arm, baseline, arms })
        }
        _ => Ok(()),
    }
}

fn prepare_arm(index: usize, arm: &mut Arm<'_>, options: &Options, observer: &mut dyn Observer) -> ArmState {
    let mut lane = ArmState::new();
    let mut run = || -> Result<(), TimingError> {
        observer.before_launch(index, Phase::Calibrate);
        let begun = arm.stopwatch.now();
        let initial = calibrate(arm, options.window, 1)?;
        // The calibration windows before and after the warm-up contribute to it.
        let second_calibration = options.window.max(arm.stopwatch.min_window());
        let calibration_time = arm.stopwatch.now().saturating_sub(begun) + second_calibration;
        observer.before_launch(index, Phase::WarmUp);
        // Resets the device state, so that the next query covers only this arm.
        observer.state(Phase::WarmUp);
        lane.reached_plateau = warm_up(arm, initial, options.warm_up.saturating_sub(calibration_time), options)?;
        let held_back =
            |observer: &mut dyn Observer| observer.state(Phase::WarmUp).is_some_and(|state| state.throttled);
        lane.throttled_in_warm_up = held_back(observer);
        // A throttled arm will be timed in isolation, and its energy is measured there.
        if options.warm_up > Duration::ZERO && !lane.throttled_in_warm_up {
            lane.energy = energy::measure_energy(arm, initial, options, observer)?;
            lane.throttled_in_warm_up = held_back(observer);
        }
        // Clocks rise during warm-up, so the calibrated window may have become too short.
        lane.launches = calibrate(arm, options.window, initial)?;
        Ok(())
    };
    lane.failure = run().err();
    lane
}

fn compare(arms: &[Arm<'_>], lanes: &[ArmState], index: usize, options: &Options) -> Option<Comparison> {
    let baseline = arms[index].baseline.filter(|&b| lanes.get(b).is_some_and(|lane| lane.failure.is_none()))?;
    // One of the two may have retired earlier: only rounds with both are compared.
    let rounds = lanes[baseline].windows.len().min(lanes[index].windows.len());
    let samples = |i: usize| per_launch(&lanes[i].windows[..rounds], arms[i].stopwatch.overhead());
    let (baseline_samples, candidate_samples) = (samples(baseline), samples(index));
    let mut comparison = Comparison::paired(&baseline_samples, &candidate_samples, options.margin)?;
    let blur = |i: usize, samples: &[f64]| {
        Some(arms[i].half_step_per_launch(&lanes[i].windows[..rounds]) / median(samples).filter(|&time| time > 0.0)?)
    };
    let blurred = blur(baseline, &baseline_samples)? + blur(index, &candidate_samples)?;
    comparison = comparison.widened(blurred, options.margin);
    // A stopwatch with a fixed cost needs several rounds per sample.
    let rounds_each = rounds as f64 / baseline_samples.len().min(candidate_samples.len()).max(1) as f64;
    let rounds = |samples: u32| (f64::from(samples) * rounds_each).ceil() as u32;
    comparison.rounds_needed = comparison.rounds_needed.map(rounds);
    Some(comparison)
}

/// True if the arm's time and speed-up are as precise as requested, and the verdict is clear or out of reach.
fn is_precise(arms: &[Arm<'_>], lanes: &[ArmState], index: usize, options: &Options, rule: &StopRule) -> bool {
    let time = arms[index].estimate(&lanes[index].windows);
    rule.is_precise(time.and_then(|time| time.relative_half_width()))
        && compare(arms, lanes, index, options).is_none_or(|comparison| {
            let width = comparison.relative_half_width();
            rule.is_precise(width) && (comparison.verdict != Verdict::Unclear || rule.is_precise_for_verdict(width))
        })
}

/// Builds the measurements from the rounds and, if there are any, from the isolated measurements.
fn conclude(
    arms: &[Arm<'_>],
    lanes: Vec<ArmState>,
    mut blocks: Vec<Option<ArmState>>,
    options: &Options,
    repeated: u32,
    spoilt: u32,
) -> Vec<Result<Measurement, TimingError>> {
    let rule = StopRule::new(options, arms.len());
    blocks.resize_with(arms.len(), || None);
    let estimate = |index: usize, lane: &ArmState| arms[index].estimate(&lane.windows);
    let isolated: Vec<Option<TimeEstimate>> =
        blocks.iter().enumerate().map(|(index, block)| estimate(index, block.as_ref()?)).collect();
    let in_turns: Vec<_> = (0..arms.len()).map(|index| compare(arms, &lanes, index, options)).collect();
    let states = lanes.into_iter().zip(blocks).zip(in_turns).enumerate();
    states
        .map(|(index, ((lane, block), in_turns))| {
            let rounds = estimate(index, &lane);
            let settled = lane.reached_plateau;
            let energy = block.as_ref().map_or(lane.energy, |block| block.energy);
            let discarded = lane.discarded + block.as_ref().map_or(0, |block| block.discarded);
            if let Some(failure) = lane.failure {
                return Err(failure);
            }
            let unpaired = arms[index].baseline.and_then(|baseline| {
                in_turns?;
                Comparison::unpaired(&isolated[baseline]?, &isolated[index]?, options.margin)
            });
            let time = isolated[index].or(rounds).ok_or(TimingError::Interrupted)?;
            let lane = block.filter(|_| isolated[index].is_some()).unwrap_or(lane);
            let comparison = unpaired.or(in_turns);
            let converged = rule.is_precise(time.relative_half_width())
                && comparison.is_none_or(|comparison| rule.is_precise(comparison.relative_half_width()));
            let scatter = ScatterStats::from_times(&per_launch(&lane.windows, arms[index].stopwatch.overhead()));
            Ok(Measurement {
                scatter: scatter.ok_or(TimingError::Interrupted)?,
                windows: lane.windows,
                states: lane.states,
                spans: lane.spans,
                time,
                // A single arm has no interleaved time.
                interleaved: rounds.filter(|_| isolated[index].is_some() && arms.len() > 1),
                comparison,
                interleaved_comparison: in_turns.filter(|_| unpaired.is_some()),
                converged,
                reached_plateau: settled && lane.reached_plateau,
                discarded,
                repeated_rounds: repeated,
                throttled_rounds: spoilt,
                energy,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm_state::WINDOW_LENGTHS;
    use crate::{MockClock, MockWork, NullObserver, Script};

    fn mock(nanos: f64, noise: f64, seed: u64) -> (MockWork, MockClock) {
        let script = Script { nanos, noise, seed, ..Script::default() };
        MockWork::pair(script)
    }

    #[test]
    fn twofold_speedup_is_measured_exactly() {
        let ((mut slow, mut slow_clock), (mut fast, mut fast_clock)) =
            (mock(20_000.0, 0.01, 1), mock(10_000.0, 0.01, 2));
        let mut arms = [Arm::new(&mut slow, &mut slow_clock), Arm::new(&mut fast, &mut fast_clock).against(0)];
        let outcome = measure(&mut arms, &Options::default(), &mut NullObserver);
        let fast = outcome[1].as_ref().unwrap();
        let comparison = fast.comparison.unwrap();
        assert_eq!(comparison.verdict, Verdict::Faster);
        assert!((comparison.ratio - 2.0).abs() < 0.02, "{comparison:?}");
        assert!(fast.converged && fast.reached_plateau && fast.discarded == 0);
        assert!(fast.windows.iter().all(|w| u64::from(w.launches) * 10_500 >= 1_000_000));
    }

    #[test]
    fn equal_seeds_give_equal_windows() {
        let run = || {
            let ((mut a, mut a_clock), (mut b, mut b_clock)) = (mock(5_000.0, 0.05, 3), mock(5_000.0, 0.05, 4));
            let mut arms = [Arm::new(&mut a, &mut a_clock), Arm::new(&mut b, &mut b_clock).against(0)];
            measure(&mut arms, &Options::default(), &mut NullObserver)
                .into_iter()
                .map(Result::unwrap)
                .collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn equal_readings_have_clock_step_width() {
        let (mut work, mut clock) = mock(10_000.0, 0.0, 1);
        let (mut other, mut other_clock) = mock(20_000.0, 0.0, 2);
        let mut arms =
            [Arm::new(&mut work, &mut clock).with_clock_step(1000), Arm::new(&mut other, &mut other_clock).against(0)];
        let [first, second] = measure(&mut arms, &Options::default(), &mut NullObserver).try_into().unwrap();
        let (time, comparison) = (first.unwrap().time, second.unwrap().comparison.unwrap());
        // A window of a millisecond, read to half a microsecond.
        let width = (time.hi.unwrap() - time.lo.unwrap()) / 2.0 / time.median;
        assert!((0.0003..0.0007).contains(&width), "{time:?}");
        assert!(comparison.hi.unwrap() - comparison.lo.unwrap() > 0.0003, "{comparison:?}");
    }

    #[test]
    fn precise_arms_retire_before_their_baseline() {
        let arm = |nanos, noise, seed| mock(nanos, noise, seed);
        let (mut base, mut base_clock) = arm(2e6, 0.002, 1);
        let (mut clear, mut clear_clock) = arm(1e6, 0.002, 2);
        let (mut noisy, mut noisy_clock) = arm(1.2e6, 0.2, 3);
        let mut arms = [
            Arm::new(&mut base, &mut base_clock),
            Arm::new(&mut clear, &mut clear_clock).against(0),
            Arm::new(&mut noisy, &mut noisy_clock).against(0),
        ];
        let outcome = measure(&mut arms, &Options::default(), &mut NullObserver);
        let windows: Vec<usize> = outcome.iter().map(|arm| arm.as_ref().unwrap().windows.len()).collect();
        assert!(windows[1] * 2 < windows[2], "{windows:?}");
        assert_eq!(windows[0], windows[2]);
        assert!(outcome.iter().all(|arm| arm.as_ref().unwrap().converged));
    }

    #[test]
    fn unclear_verdicts_are_measured_longer() {
        let run = |ratio: f64| {
            let ((mut a, mut a_clock), (mut b, mut b_clock)) = (mock(2e7, 0.017, 3), mock(2e7 * ratio, 0.017, 4));
            let mut arms = [Arm::new(&mut a, &mut a_clock), Arm::new(&mut b, &mut b_clock).against(0)];
            measure(&mut arms, &Options::default(), &mut NullObserver).remove(1).unwrap()
        };
        let (clear, close) = (run(1.10), run(1.026));
        assert_eq!(clear.comparison.unwrap().verdict, Verdict::Slower);
        assert_eq!(close.comparison.unwrap().verdict, Verdict::Slower, "{:?}", close.comparison);
        assert!(close.windows.len() > 2 * clear.windows.len());
    }

    #[test]
    fn slope_removes_fixed_cost_per_window() {
        let script = Script { nanos: 7_000.0, fixed: 40_000.0, noise: 0.002, ..Script::default() };
        let (mut work, mut clock) = MockWork::pair(script);
        let mut arms = [Arm::new(&mut work, &mut clock)];
        let measured = measure(&mut arms, &Options::default(), &mut NullObserver).remove(0).unwrap();
        assert!((measured.time.median / 7_000.0 - 1.0).abs() < 0.003, "{:?}", measured.time);
    }

    #[test]
    fn noisy_arm_stops_unconverged_at_max_time() {
        let (mut work, mut clock) = mock(50_000.0, 0.8, 5);
        let mut arms = [Arm::new(&mut work, &mut clock)];
        let options = Options { max_time: Duration::from_millis(400), precision: 0.001, ..Options::default() };
        let measured = measure(&mut arms, &options, &mut NullObserver).remove(0).unwrap();
        assert!(!measured.converged && measured.windows.len() > 30);
    }

    #[test]
    fn failed_arm_drops_out() {
        let (mut good, mut good_clock) = mock(5_000.0, 0.01, 6);
        let (mut bad, mut bad_clock) =
            MockWork::pair(Script { nanos: 5_000.0, fails_after: Some(5_000), ..Script::default() });
        let mut arms = [Arm::new(&mut good, &mut good_clock), Arm::new(&mut bad, &mut bad_clock).against(0)];
        let outcome = measure(&mut arms, &Options::default(), &mut NullObserver);
        assert!(outcome[0].is_ok());
        assert!(matches!(&outcome[1], Err(TimingError::Failed(_))), "{:?}", outcome[1]);
    }

    #[test]
    fn invalid_baseline_is_rejected_before_launch() {
        struct Untouched;
        impl Observer for Untouched {
            fn before_launch(&mut self, arm: usize, _: Phase) {
                assert_ne!(arm, 1, "launched");
            }
        }
        for invalid in [5, 1] {
            let ((mut a, mut a_clock), (mut b, mut b_clock)) = (mock(5_000.0, 0.01, 3), mock(5_000.0, 0.01, 4));
            let mut arms = [Arm::new(&mut a, &mut a_clock), Arm::new(&mut b, &mut b_clock).against(invalid)];
            let outcome = measure(&mut arms, &Options::default(), &mut Untouched);
            assert!(outcome[0].is_ok());
            assert!(
                matches!(outcome[1], Err(TimingError::InvalidBaseline { arm: 1, baseline, arms: 2 }) if baseline == invalid),
                "{:?}",
                outcome[1]
            );
        }
    }

    #[test]
    fn maximum_duration_does_not_overflow() {
        let (mut work, mut clock) = mock(50_000.0, 0.0, 5);
        let options = Options { max_time: Duration::MAX, ..Options::default() };
        assert!(
            measure(&mut [Arm::new(&mut work, &mut clock)], &options, &mut NullObserver).remove(0).unwrap().converged
        );
    }

    struct Compiler {
        every: u32,
        calls: u32,
        events: u64,
    }

    impl Observer for Compiler {
        fn jit_events(&mut self) -> u64 {
            self.calls += 1;
            self.events += u64::from(self.calls.is_multiple_of(self.every));
            self.events
        }
    }

    #[test]
    fn windows_with_compilation_are_discarded() {
        let (mut work, mut clock) = mock(5_000.0, 0.01, 7);
        let mut arms = [Arm::new(&mut work, &mut clock)];
        let mut once = Compiler { every: 10, calls: 0, events: 0 };
        let measured = measure(&mut arms, &Options::default(), &mut once).remove(0).unwrap();
        assert!(measured.discarded > 0);
    }

    #[test]
    fn constant_compilation_is_an_error() {
        let (mut work, mut clock) = mock(5_000.0, 0.01, 8);
        let mut arms = [Arm::new(&mut work, &mut clock)];
        let mut always = Compiler { every: 1, calls: 0, events: 0 };
        let outcome = measure(&mut arms, &Options::default(), &mut always).remove(0);
        assert!(matches!(outcome, Err(TimingError::CompiledInWindow { .. })), "{outcome:?}");
    }

    /// Reports throttling during warm-up, and in every round for a while.
    struct Hot {
        rounds: u32,
    }

    impl Observer for Hot {
        fn must_repeat_round(&mut self) -> bool {
            self.rounds = self.rounds.saturating_sub(1);
            self.rounds > 0
        }
    }

    #[test]
    fn throttled_rounds_are_repeated_within_budget() {
        let run = |rounds| {
            let ((mut a, mut a_clock), (mut b, mut b_clock)) = (mock(5_000.0, 0.01, 3), mock(5_000.0, 0.01, 4));
            let mut arms = [Arm::new(&mut a, &mut a_clock), Arm::new(&mut b, &mut b_clock).against(0)];
            let outcome = measure(&mut arms, &Options::default(), &mut Hot { rounds });
            outcome.into_iter().map(Result::unwrap).collect::<Vec<_>>()
        };
        for arms in [run(2), run(3), run(51)] {
            assert_eq!(arms[0].windows.len(), arms[1].windows.len());
        }
        let (cool, warm, hot) = (run(2), run(3), run(51));
        assert_eq!((cool[0].repeated_rounds, cool[0].throttled_rounds), (0, 0));
        assert_eq!((warm[0].repeated_rounds, warm[0].throttled_rounds), (1, 0));
        assert!(
            hot[0].throttled_rounds > 0 && hot[0].repeated_rounds > 1,
            "{} {}",
            hot[0].repeated_rounds,
            hot[0].throttled_rounds
        );
        assert_eq!(hot[0].repeated_rounds + hot[0].throttled_rounds, 49);
    }

    #[test]
    fn repeated_rounds_keep_length_cycles_complete() {
        let script = Script { nanos: 7_000.0, fixed: 40_000.0, noise: 0.002, ..Script::default() };
        let (mut work, mut clock) = MockWork::pair(script);
        let mut arms = [Arm::new(&mut work, &mut clock)];
        let measured = measure(&mut arms, &Options::default(), &mut Hot { rounds: 20 }).remove(0).unwrap();
        assert!(measured.repeated_rounds > 2, "{}", measured.repeated_rounds);
        let shortest = measured.windows.iter().map(|window| window.launches).min().unwrap();
        for cycle in measured.windows.chunks_exact(WINDOW_LENGTHS.len()) {
            let mut lengths: Vec<u32> = cycle.iter().map(|window| window.launches / shortest).collect();
            lengths.sort_unstable();
            assert_eq!(lengths, WINDOW_LENGTHS);
        }
    }

    #[test]
    fn zero_time_is_an_error() {
        let (mut work, mut clock) = mock(0.0, 0.0, 9);
        let mut arms = [Arm::new(&mut work, &mut clock)];
        let outcome = measure(&mut arms, &Options::default(), &mut NullObserver).remove(0);
        assert!(matches!(outcome, Err(TimingError::NoTime { .. })), "{outcome:?}");
    }
}
