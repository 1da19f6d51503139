//! Interleaved rounds: one window of every arm in random order, until the intervals are narrow.

use crate::calibrate::{calibrate, timed};
use crate::estimate::per_launch;
use crate::warm_up::warm_up;
use crate::{Comparison, Estimate, Failure, Options, Overhead, Series, StopRule, Stopwatch, TimingError, Window, Work};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// One candidate of a comparison.
pub struct Arm<'a> {
    pub(crate) work: &'a mut dyn Work,
    pub(crate) stopwatch: &'a mut dyn Stopwatch,
    baseline: Option<usize>,
}

impl<'a> Arm<'a> {
    /// An arm compared with nothing.
    pub fn new(work: &'a mut dyn Work, stopwatch: &'a mut dyn Stopwatch) -> Self {
        Self { work, stopwatch, baseline: None }
    }

    /// Compares this arm with the one at `baseline` in the same group, counted from 0.
    pub fn against(mut self, baseline: usize) -> Self {
        self.baseline = Some(baseline);
        self
    }
}

/// What is happening to an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Finding out how many launches a window holds.
    Calibrate,
    /// Launching until the times agree.
    WarmUp,
    /// Timing a window.
    Measure,
}

/// Watches a measurement from outside; every method is called between windows, never inside one.
pub trait Observer {
    /// The arm is about to be launched.
    fn touch(&mut self, _arm: usize, _phase: Phase) {}
    /// Rounds done so far.
    fn round(&mut self, _rounds: u32) {}
    /// Whether to stop now and keep what there is.
    fn interrupted(&mut self) -> bool {
        false
    }
    /// Kernels compiled or tuned in this process so far: a window in which the count moves is void.
    fn disturbances(&mut self) -> u64 {
        0
    }
    /// Whether something held the device back in the round that has just been measured, so that it should be repeated.
    fn spoilt(&mut self) -> bool {
        false
    }
    /// Energy that the device has used so far, in joules, where it counts.
    fn joules(&mut self) -> Option<f64> {
        None
    }
}

/// Watches nothing.
pub struct Quiet;
impl Observer for Quiet {}

/// What was measured of one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// Every window, in order of rounds.
    pub windows: Vec<Window>,
    /// Nanoseconds per launch.
    pub time: Estimate,
    /// The speed-up over the arm's baseline, if it has one that was measured too.
    pub comparison: Option<Comparison>,
    /// Whether time and speed-up are as precise as asked for.
    pub converged: bool,
    /// Whether successive windows agreed before measuring began.
    pub settled: bool,
    /// Windows thrown away because a kernel was compiled or tuned inside them.
    pub discarded: u32,
    /// Rounds measured again because something held the device back in them.
    pub repeated: u32,
    /// Rounds kept although something held the device back in them: too many had been repeated.
    pub spoilt: u32,
    /// Energy of a launch in joules, where the device counts it.
    pub joules: Option<f64>,
    /// How the windows scatter.
    pub scatter: Series,
}

/// What the rounds know of an arm.
struct Lane {
    launches: u32,
    settled: bool,
    joules: Option<f64>,
    windows: Vec<Window>,
    /// The lengths of every four windows in a row, in their order.
    lengths: [u32; LENGTHS.len()],
    discarded: u32,
    failure: Option<TimingError>,
}

impl Lane {
    fn new() -> Self {
        Self {
            launches: 1,
            settled: false,
            joules: None,
            windows: vec![],
            lengths: LENGTHS,
            discarded: 0,
            failure: None,
        }
    }
}

/// Windows of these multiples of the calibrated length separate a fixed cost from the launches.
const LENGTHS: [u32; 4] = [1, 2, 3, 4];
/// Launches that prime an arm again after a disturbed window.
const PRIMING: u32 = 3;
/// One round in so many may be measured again.
const REPEATS_ONE_IN: u32 = 5;

/// Measures all arms together. An arm that fails drops out; the others go on.
///
/// ```
/// use calorimeter_timing::{Arm, Closure, Options, Quiet, WallClock, measure};
/// use std::time::Duration;
///
/// let mut works = [1, 2, 3].map(|times| Closure::new(move || (0..1000 * times).fold(0u64, |sum, i| sum ^ i * i)));
/// let mut clocks = [(); 3].map(|()| WallClock::synchronous());
/// let arms = works.iter_mut().zip(&mut clocks).map(|(work, clock)| Arm::new(work, clock));
/// let mut arms: Vec<Arm> = arms.enumerate().map(|(i, arm)| if i == 0 { arm } else { arm.against(0) }).collect();
/// let options = Options { max_time: Duration::from_millis(50), warm_up: Duration::ZERO, ..Options::default() };
/// for measured in measure(&mut arms, &options, &mut Quiet) {
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
    let mut lanes: Vec<Lane> = Vec::with_capacity(arms.len());
    let count = arms.len();
    for (index, arm) in arms.iter_mut().enumerate() {
        lanes.push(match check(index, arm, count, options) {
            Ok(()) => prepare(index, arm, options, observer),
            Err(error) => Lane { failure: Some(error), ..Lane::new() },
        });
    }

    let mut rule = StopRule::new(options, arms.len());
    let start = now(arms, &lanes);
    let mut order: Vec<usize> = (0..arms.len()).collect();
    // What happened while warming up spoils no round.
    observer.spoilt();
    let (mut rounds, mut repeated, mut spoilt) = (0, 0, 0);
    while lanes.iter().any(|lane| lane.failure.is_none()) && !observer.interrupted() {
        order.shuffle(&mut rng);
        for &index in order.iter().filter(|&&index| lanes[index].failure.is_none()).collect::<Vec<_>>() {
            observer.touch(index, Phase::Measure);
            let alone = arms.len() == 1;
            if let Err(failure) = round(&mut arms[index], &mut lanes[index], alone, &mut rng, observer) {
                lanes[index].failure = Some(failure);
            }
        }
        if observer.spoilt() {
            // The whole round, so that windows stay paired; not for ever, or a hot device would never finish.
            if repeated <= rounds / REPEATS_ONE_IN {
                repeated += 1;
                for lane in lanes.iter_mut().filter(|lane| lane.failure.is_none()) {
                    lane.windows.pop();
                }
                continue;
            }
            spoilt += 1;
        }
        rounds += 1;
        observer.round(rounds);
        let elapsed = now(arms, &lanes).saturating_sub(start);
        let enough = rule.looks(rounds, elapsed) && all_narrow(arms, &lanes, options, &rule);
        if enough || rule.exhausted(rounds, elapsed) {
            break;
        }
    }
    conclude(arms, lanes, options, repeated, spoilt)
}

fn now(arms: &[Arm<'_>], lanes: &[Lane]) -> std::time::Duration {
    let alive = arms.iter().zip(lanes).find(|(_, lane)| lane.failure.is_none());
    alive.map_or_else(Default::default, |(arm, _)| arm.stopwatch.now())
}

/// Whether an arm can be measured, before anything of it is launched.
fn check(arm: usize, one: &Arm<'_>, arms: usize, options: &Options) -> Result<(), TimingError> {
    options.check()?;
    match one.baseline {
        Some(baseline) if baseline >= arms || baseline == arm => {
            Err(TimingError::NoSuchBaseline { arm, baseline, arms })
        }
        _ => Ok(()),
    }
}

fn prepare(index: usize, arm: &mut Arm<'_>, options: &Options, observer: &mut dyn Observer) -> Lane {
    let mut lane = Lane::new();
    let mut steps = || -> Result<(), TimingError> {
        observer.touch(index, Phase::Calibrate);
        let guess = calibrate(arm, options.window, 1)?;
        observer.touch(index, Phase::WarmUp);
        let warm = warm_up(arm, guess, options, observer)?;
        (lane.settled, lane.joules) = (warm.settled, warm.joules);
        // Clocks rise while warming up: the window that was long enough before may be too short now.
        lane.launches = calibrate(arm, options.window, guess)?;
        Ok(())
    };
    lane.failure = steps().err();
    lane
}

fn round(
    arm: &mut Arm<'_>,
    lane: &mut Lane,
    alone: bool,
    rng: &mut ChaCha8Rng,
    observer: &mut dyn Observer,
) -> Result<(), TimingError> {
    let length = next_length(arm.stopwatch.overhead(), lane, rng);
    let mut primed = false;
    loop {
        if !alone {
            // One untimed launch takes the cost of switching arms.
            arm.work.launch()?;
            arm.work.settle()?;
        }
        let before = observer.disturbances();
        let launches = lane.launches.saturating_mul(length);
        let nanos = timed(arm.stopwatch, arm.work, launches)?;
        let events = observer.disturbances() - before;
        if events == 0 {
            lane.windows.push(Window { launches, nanos });
            return Ok(());
        }
        lane.discarded += 1;
        if primed {
            return Err(TimingError::NotSilent { events });
        }
        prime(arm.work)?;
        primed = true;
    }
}

fn prime(work: &mut dyn Work) -> Result<(), Failure> {
    for _ in 0..PRIMING {
        work.launch()?;
    }
    work.settle()
}

fn next_length(overhead: Overhead, lane: &mut Lane, rng: &mut ChaCha8Rng) -> u32 {
    if overhead == Overhead::Outside {
        return 1;
    }
    // By the windows that are kept: one that a spoilt round threw away is measured again at its length.
    let next = lane.windows.len() % LENGTHS.len();
    if next == 0 {
        lane.lengths.shuffle(rng);
    }
    lane.lengths[next]
}

fn compare(arms: &[Arm<'_>], lanes: &[Lane], index: usize, options: &Options) -> Option<Comparison> {
    let baseline = arms[index].baseline.filter(|&b| lanes.get(b).is_some_and(|lane| lane.failure.is_none()))?;
    let samples = |i: usize| per_launch(&lanes[i].windows, arms[i].stopwatch.overhead());
    let (theirs, ours) = (samples(baseline), samples(index));
    let mut comparison = Comparison::of(&theirs, &ours, options.margin)?;
    // A stopwatch with a fixed cost takes several rounds for a sample.
    let rounds_each = lanes[index].windows.len() as f64 / theirs.len().min(ours.len()).max(1) as f64;
    let rounds = |samples: u32| (f64::from(samples) * rounds_each).ceil() as u32;
    comparison.rounds_needed = comparison.rounds_needed.map(rounds);
    Some(comparison)
}

fn all_narrow(arms: &[Arm<'_>], lanes: &[Lane], options: &Options, rule: &StopRule) -> bool {
    (0..arms.len()).filter(|&i| lanes[i].failure.is_none()).all(|i| {
        let time = Estimate::of(&lanes[i].windows, arms[i].stopwatch.overhead());
        rule.narrow(time.and_then(|t| t.relative_half_width()))
            && compare(arms, lanes, i, options).is_none_or(|c| rule.narrow(c.relative_half_width()))
    })
}

fn conclude(
    arms: &[Arm<'_>],
    lanes: Vec<Lane>,
    options: &Options,
    repeated: u32,
    spoilt: u32,
) -> Vec<Result<Measurement, TimingError>> {
    let rule = StopRule::new(options, arms.len());
    let comparisons: Vec<_> = (0..arms.len()).map(|i| compare(arms, &lanes, i, options)).collect();
    lanes
        .into_iter()
        .zip(arms)
        .zip(comparisons)
        .map(|((lane, arm), comparison)| {
            if let Some(failure) = lane.failure {
                return Err(failure);
            }
            let time = Estimate::of(&lane.windows, arm.stopwatch.overhead()).ok_or(TimingError::Interrupted)?;
            let converged = rule.narrow(time.relative_half_width())
                && comparison.is_none_or(|c| rule.narrow(c.relative_half_width()));
            let Lane { windows, settled, discarded, joules, .. } = lane;
            let scatter = Series::of(&per_launch(&windows, arm.stopwatch.overhead()));
            let scatter = scatter.ok_or(TimingError::Interrupted)?;
            Ok(Measurement {
                windows,
                scatter,
                time,
                comparison,
                converged,
                settled,
                discarded,
                repeated,
                spoilt,
                joules,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MockClock, MockWork, Script, Verdict};
    use std::time::Duration;

    fn mock(nanos: f64, noise: f64, seed: u64) -> (MockWork, MockClock) {
        let script = Script { nanos, noise, seed, ..Script::default() };
        MockWork::pair(script)
    }

    #[test]
    fn a_twice_faster_arm_is_found_faster_to_the_digit() {
        let ((mut slow, mut slow_clock), (mut fast, mut fast_clock)) =
            (mock(20_000.0, 0.01, 1), mock(10_000.0, 0.01, 2));
        let mut arms = [Arm::new(&mut slow, &mut slow_clock), Arm::new(&mut fast, &mut fast_clock).against(0)];
        let outcome = measure(&mut arms, &Options::default(), &mut Quiet);
        let fast = outcome[1].as_ref().unwrap();
        let comparison = fast.comparison.unwrap();
        assert_eq!(comparison.verdict, Verdict::Faster);
        assert!((comparison.ratio - 2.0).abs() < 0.02, "{comparison:?}");
        assert!(fast.converged && fast.settled && fast.discarded == 0);
        assert!(fast.windows.iter().all(|w| u64::from(w.launches) * 10_500 >= 1_000_000));
    }

    #[test]
    fn the_same_seed_gives_the_same_windows() {
        let run = || {
            let ((mut a, mut a_clock), (mut b, mut b_clock)) = (mock(5_000.0, 0.05, 3), mock(5_000.0, 0.05, 4));
            let mut arms = [Arm::new(&mut a, &mut a_clock), Arm::new(&mut b, &mut b_clock).against(0)];
            measure(&mut arms, &Options::default(), &mut Quiet).into_iter().map(Result::unwrap).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn a_fixed_cost_per_window_is_removed_by_the_slope() {
        let script = Script { nanos: 7_000.0, fixed: 40_000.0, noise: 0.002, ..Script::default() };
        let (mut work, mut clock) = MockWork::pair(script);
        let mut arms = [Arm::new(&mut work, &mut clock)];
        let measured = measure(&mut arms, &Options::default(), &mut Quiet).remove(0).unwrap();
        assert!((measured.time.median / 7_000.0 - 1.0).abs() < 0.003, "{:?}", measured.time);
    }

    #[test]
    fn noise_beyond_the_precision_ends_at_the_cap_and_says_so() {
        let (mut work, mut clock) = mock(50_000.0, 0.8, 5);
        let mut arms = [Arm::new(&mut work, &mut clock)];
        let options = Options { max_time: Duration::from_millis(400), precision: 0.001, ..Options::default() };
        let measured = measure(&mut arms, &options, &mut Quiet).remove(0).unwrap();
        assert!(!measured.converged && measured.windows.len() > 30);
    }

    #[test]
    fn an_arm_that_fails_drops_out_and_the_others_go_on() {
        let (mut good, mut good_clock) = mock(5_000.0, 0.01, 6);
        let (mut bad, mut bad_clock) =
            MockWork::pair(Script { nanos: 5_000.0, fails_after: Some(5_000), ..Script::default() });
        let mut arms = [Arm::new(&mut good, &mut good_clock), Arm::new(&mut bad, &mut bad_clock).against(0)];
        let outcome = measure(&mut arms, &Options::default(), &mut Quiet);
        assert!(outcome[0].is_ok());
        assert!(matches!(&outcome[1], Err(TimingError::Failed(_))), "{:?}", outcome[1]);
    }

    #[test]
    fn an_arm_without_its_baseline_is_refused_before_anything_is_launched() {
        struct Untouched;
        impl Observer for Untouched {
            fn touch(&mut self, arm: usize, _: Phase) {
                assert_ne!(arm, 1, "launched");
            }
        }
        for (baseline, expected) in [
            (5, "arm 1 is compared with arm 5, which is not among the 2 arms, counted from 0"),
            (1, "arm 1 is compared with arm 1, which is itself"),
        ] {
            let ((mut a, mut a_clock), (mut b, mut b_clock)) = (mock(5_000.0, 0.01, 3), mock(5_000.0, 0.01, 4));
            let mut arms = [Arm::new(&mut a, &mut a_clock), Arm::new(&mut b, &mut b_clock).against(baseline)];
            let outcome = measure(&mut arms, &Options::default(), &mut Untouched);
            assert!(outcome[0].is_ok());
            assert_eq!(outcome[1].as_ref().unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn the_longest_time_there_is_overflows_nothing() {
        let (mut work, mut clock) = mock(50_000.0, 0.0, 5);
        let options = Options { max_time: Duration::MAX, ..Options::default() };
        assert!(measure(&mut [Arm::new(&mut work, &mut clock)], &options, &mut Quiet).remove(0).unwrap().converged);
    }

    struct Compiler {
        every: u32,
        calls: u32,
        events: u64,
    }

    impl Observer for Compiler {
        fn disturbances(&mut self) -> u64 {
            self.calls += 1;
            self.events += u64::from(self.calls.is_multiple_of(self.every));
            self.events
        }
    }

    #[test]
    fn a_window_in_which_a_kernel_was_compiled_is_thrown_away() {
        let (mut work, mut clock) = mock(5_000.0, 0.01, 7);
        let mut arms = [Arm::new(&mut work, &mut clock)];
        let mut once = Compiler { every: 10, calls: 0, events: 0 };
        let measured = measure(&mut arms, &Options::default(), &mut once).remove(0).unwrap();
        assert!(measured.discarded > 0);
    }

    #[test]
    fn an_arm_that_never_stops_compiling_has_no_time() {
        let (mut work, mut clock) = mock(5_000.0, 0.01, 8);
        let mut arms = [Arm::new(&mut work, &mut clock)];
        let mut always = Compiler { every: 1, calls: 0, events: 0 };
        let outcome = measure(&mut arms, &Options::default(), &mut always).remove(0);
        assert!(matches!(outcome, Err(TimingError::NotSilent { .. })), "{outcome:?}");
    }

    /// Throttles while it warms up, and in every round for a while.
    struct Hot {
        rounds: u32,
    }

    impl Observer for Hot {
        fn spoilt(&mut self) -> bool {
            self.rounds = self.rounds.saturating_sub(1);
            self.rounds > 0
        }
    }

    #[test]
    fn rounds_of_a_hot_device_are_repeated_within_a_budget_and_then_counted() {
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
        assert_eq!((cool[0].repeated, cool[0].spoilt), (0, 0));
        assert_eq!((warm[0].repeated, warm[0].spoilt), (1, 0));
        assert!(hot[0].spoilt > 0 && hot[0].repeated > 1, "{} {}", hot[0].repeated, hot[0].spoilt);
        assert_eq!(hot[0].repeated + hot[0].spoilt, 49);
    }

    #[test]
    fn a_repeated_round_leaves_every_cycle_of_lengths_whole() {
        let script = Script { nanos: 7_000.0, fixed: 40_000.0, noise: 0.002, ..Script::default() };
        let (mut work, mut clock) = MockWork::pair(script);
        let mut arms = [Arm::new(&mut work, &mut clock)];
        let measured = measure(&mut arms, &Options::default(), &mut Hot { rounds: 20 }).remove(0).unwrap();
        assert!(measured.repeated > 2, "{}", measured.repeated);
        let shortest = measured.windows.iter().map(|window| window.launches).min().unwrap();
        for cycle in measured.windows.chunks_exact(LENGTHS.len()) {
            let mut lengths: Vec<u32> = cycle.iter().map(|window| window.launches / shortest).collect();
            lengths.sort_unstable();
            assert_eq!(lengths, LENGTHS);
        }
    }

    #[test]
    fn launches_that_take_no_time_are_an_error_not_a_speed() {
        let (mut work, mut clock) = mock(0.0, 0.0, 9);
        let mut arms = [Arm::new(&mut work, &mut clock)];
        let outcome = measure(&mut arms, &Options::default(), &mut Quiet).remove(0);
        assert!(matches!(outcome, Err(TimingError::NoTime { .. })), "{outcome:?}");
    }
}
