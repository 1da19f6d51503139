//! Coverage of intervals and verdicts, simulated on the mock through the real [`measure`] and its stop rule. `cargo
//! test -p calorimeter-timing coverage -- --nocapture` prints the results.

use crate::{
    Arm, Comparison, Drift, Measurement, MockWork, NullObserver, Options, Script, Stopwatch, Verdict, measure, median,
};
use std::time::Duration;

/// Accepted coverage of 95 % intervals.
const NOMINAL_COVERAGE: std::ops::RangeInclusive<f64> = 0.93..=0.975;
/// True speed-up of the simulated candidates.
const CANDIDATE_RATIO: f64 = 1.05;
/// Launch that fills a window of the default length: hundreds of windows in the minimum time.
const SHORT_LAUNCH_NANOS: f64 = 1e6;
/// Long enough that the minimum number of windows suffices.
const LONG_LAUNCH_NANOS: f64 = 2e7;

/// Measures two arms interleaved, of which the second is faster by `ratio`.
fn measure_pair(script: &Script, ratio: f64, options: &Options, seed: u64) -> [Measurement; 2] {
    let seeds = |of: u64| seed * 10 + of;
    let drift = script.drift.map(|drift| Drift { seed: seeds(0), ..drift });
    let script = Script { drift, ..script.clone() };
    let (mut slow, mut slow_clock) = MockWork::pair(Script { seed: seeds(1), ..script.clone() });
    let faster = Script { nanos: script.nanos / ratio, seed: seeds(2), ..script };
    let mut fast_clock = slow_clock.with_shared_machine(faster.clone());
    let (mut fast, _) = MockWork::pair(faster);
    let mut arms = [Arm::new(&mut slow, &mut slow_clock), Arm::new(&mut fast, &mut fast_clock).against(0)];
    let options = Options { seed: seeds(3), warm_up: Duration::ZERO, ..options.clone() };
    let outcome = measure(&mut arms, &options, &mut NullObserver).into_iter().map(Result::unwrap).collect::<Vec<_>>();
    outcome.try_into().unwrap()
}

/// Coverage over many comparisons.
#[derive(Debug)]
struct Coverage {
    /// Share of the time intervals that contain the true value.
    time: f64,
    /// Share of the speed-up intervals that contain the true value.
    speed_up: f64,
    /// Share of the arms whose time is sound.
    sound: f64,
    /// Share of the arms that converged although their median differs from the true value by more than the precision.
    wrong: f64,
    /// Mean number of windows per arm.
    windows: f64,
}

fn simulate(script: &Script, options: &Options, comparisons: u64) -> Coverage {
    let truth = script.nanos * long_run_median(script);
    let mut total = Coverage { time: 0.0, speed_up: 0.0, sound: 0.0, wrong: 0.0, windows: 0.0 };
    for seed in 0..comparisons {
        let arms = measure_pair(script, CANDIDATE_RATIO, options, seed);
        for (arm, truth) in arms.iter().zip([truth, truth / CANDIDATE_RATIO]) {
            let holds = arm.time.lo.is_some_and(|lo| lo <= truth) && arm.time.hi.is_some_and(|hi| truth <= hi);
            total.time += f64::from(u8::from(holds)) / 2.0;
            let is_wrong = arm.converged && (arm.time.median / truth - 1.0).abs() > options.precision;
            total.sound += f64::from(u8::from(arm.time.sound)) / 2.0;
            total.wrong += f64::from(u8::from(is_wrong)) / 2.0;
            total.windows += arm.windows.len() as f64 / 2.0;
        }
        total.speed_up += f64::from(u8::from(covers(&arms[1].comparison.unwrap(), CANDIDATE_RATIO)));
    }
    let share = |sum: f64| sum / comparisons as f64;
    let Coverage { time, speed_up, sound, wrong, windows } = total;
    Coverage {
        time: share(time),
        speed_up: share(speed_up),
        sound: share(sound),
        wrong: share(wrong),
        windows: share(windows),
    }
}

fn covers(comparison: &Comparison, ratio: f64) -> bool {
    comparison.lo.is_some_and(|lo| lo <= ratio) && comparison.hi.is_some_and(|hi| ratio <= hi)
}

/// Long-run median of a window relative to the scripted time. Noise and drift are symmetric.
fn long_run_median(script: &Script) -> f64 {
    if script.spikes == 0.0 {
        return 1.0;
    }
    let (mut work, mut clock) =
        MockWork::pair(Script { nanos: 1e9, fixed: 0.0, drift: None, seed: u64::MAX, ..script.clone() });
    let mut window = || clock.window(&mut work, 1).unwrap().resolve().unwrap() as f64 / 1e9;
    median(&(0..200_000).map(|_| window()).collect::<Vec<_>>()).unwrap()
}

fn white(nanos: f64, noise: f64) -> Script {
    Script { nanos, noise, ..Script::default() }
}

fn spiky(nanos: f64, noise: f64) -> Script {
    Script { spikes: 0.05, ..white(nanos, noise) }
}

/// Drift of 0.5 % under white noise of equal deviation.
fn drifting(nanos: f64, windows: f64) -> Script {
    Script { drift: Some(Drift { sd: 0.005, windows, seed: 0 }), ..white(nanos, 0.005 * 3f64.sqrt()) }
}

fn assert_coverage(name: &str, script: &Script, options: &Options, comparisons: u64) {
    let coverage = simulate(script, options, comparisons);
    println!("{name}: {coverage:?}");
    assert!(
        NOMINAL_COVERAGE.contains(&coverage.time) && NOMINAL_COVERAGE.contains(&coverage.speed_up),
        "{name}: {coverage:?}"
    );
}

/// Checks coverage under independent noise, for all numbers of windows at which the stop rule ends.
fn assert_coverage_at_every_length(noise: fn(f64, f64) -> Script) {
    let options = Options::default();
    assert_coverage("hundreds of windows at the first look", &noise(SHORT_LAUNCH_NANOS, 0.01), &options, 1000);
    assert_coverage("thirty windows", &noise(LONG_LAUNCH_NANOS, 0.01), &options, 2000);
    assert_coverage("as many windows as the width asks for", &noise(LONG_LAUNCH_NANOS, 0.04), &options, 1000);
    let capped = Options { max_time: Duration::from_secs(2), ..options };
    assert_coverage("as many windows as there is time for", &noise(LONG_LAUNCH_NANOS, 0.1), &capped, 2000);
}

#[test]
fn coverage_under_white_noise() {
    assert_coverage_at_every_length(white);
}

#[test]
fn coverage_under_spikes() {
    assert_coverage_at_every_length(spiky);
}

#[test]
fn coverage_with_fixed_cost_per_window() {
    let fixed = |script: Script| Script { fixed: 40_000.0, ..script };
    assert_coverage("white noise", &fixed(white(SHORT_LAUNCH_NANOS, 0.01)), &Options::default(), 1000);
    assert_coverage("spikes", &fixed(spiky(SHORT_LAUNCH_NANOS, 0.01)), &Options::default(), 1000);
}

#[test]
fn coverage_under_drift_of_50_windows() {
    // Every other window belongs to an arm: 1000 of them are forty times as long as the drift.
    let options = Options { max_windows: 1000, ..Options::default() };
    assert_coverage("a drift of 50 windows", &drifting(SHORT_LAUNCH_NANOS, 50.0), &options, 1000);
}

#[test]
fn slow_drift_affects_times_not_ratios() {
    let options = Options { max_windows: 400, ..Options::default() };
    for (nanos, windows) in [(LONG_LAUNCH_NANOS, 50.0), (SHORT_LAUNCH_NANOS, 500.0), (SHORT_LAUNCH_NANOS, 5000.0)] {
        let found = simulate(&drifting(nanos, windows), &options, 4000);
        println!("a drift of {windows} windows: {found:?}");
        assert!(NOMINAL_COVERAGE.contains(&found.speed_up), "a drift of {windows} windows: {found:?}");
        assert!(found.time < *NOMINAL_COVERAGE.start(), "a drift of {windows} windows: {found:?}");
        assert!(found.wrong <= 0.05, "a drift of {windows} windows: {found:?}");
        // Drift is only detected if it moves the windows noticeably during the measurement.
        assert!(windows != 500.0 || found.sound < 0.5, "a drift of {windows} windows: {found:?}");
    }
}

/// Counts the verdicts FASTER, SLOWER, SAME, UNCLEAR of 200 comparisons, and the intervals that exclude 1.
fn verdicts(ratio: f64) -> ([usize; 4], usize) {
    let script = Script { noise: 0.01, ..drifting(SHORT_LAUNCH_NANOS, 500.0) };
    // A cap saves time: speed-ups do not need to wait for the drift.
    let options = Options { max_windows: 400, ..Options::default() };
    let comparison = |seed| measure_pair(&script, ratio, &options, seed)[1].comparison.unwrap();
    let comparisons: Vec<Comparison> = (0..200).map(comparison).collect();
    let count = |verdict| comparisons.iter().filter(|comparison| comparison.verdict == verdict).count();
    let counts = [Verdict::Faster, Verdict::Slower, Verdict::Same, Verdict::Unclear].map(count);
    let excluding = comparisons.iter().filter(|comparison| !covers(comparison, 1.0)).count();
    println!("ratio {ratio}: {counts:?}, {excluding} exclude 1");
    (counts, excluding)
}

#[test]
fn identical_arms_are_rarely_different() {
    let ([faster, slower, ..], excluding) = verdicts(1.0);
    assert!(faster + slower <= 10, "{faster} faster, {slower} slower");
    assert!((2..=18).contains(&excluding), "{excluding} of 200 intervals exclude 1");
}

#[test]
fn verdicts_separate_5_from_0_2_percent() {
    let ([_, slower, ..], _) = verdicts(1.0 / 1.05);
    assert!(slower >= 190, "{slower} of 200 slower");
    let ([.., same, _], _) = verdicts(1.0 / 1.002);
    assert!(same >= 190, "{same} of 200 the same");
}

mod noise;

use noise::{NoiseModel, NoopWork};

/// All noise models.
const NOISES: [NoiseModel; 9] = [
    NoiseModel::Normal(0.01),
    NoiseModel::Normal(0.03),
    NoiseModel::SharedAutoregression,
    NoiseModel::ArmAutoregression,
    NoiseModel::Drift,
    NoiseModel::TwoClocks,
    NoiseModel::Bimodal,
    NoiseModel::Spikes,
    NoiseModel::LongTail,
];

/// Measures arms with these times; all others are compared with the first.
fn measure_group(noise: NoiseModel, nanos: &[f64], options: &Options, seed: u64) -> Vec<Measurement> {
    let mut clocks = noise.clocks(nanos, seed);
    let mut works: Vec<NoopWork> = nanos.iter().map(|_| NoopWork).collect();
    let arms = works.iter_mut().zip(&mut clocks).enumerate().map(|(index, (work, clock))| {
        let arm = Arm::new(work, clock);
        if index == 0 { arm } else { arm.against(0) }
    });
    let options = Options { seed, warm_up: Duration::ZERO, ..options.clone() };
    measure(&mut arms.collect::<Vec<_>>(), &options, &mut NullObserver).into_iter().map(Result::unwrap).collect()
}

/// Shares of times and of speed-ups whose intervals contain the true value, and of arms that converge, for identical
/// arms.
fn coverage(noise: NoiseModel, arms: usize, groups: u64) -> (f64, f64, f64) {
    let truth = LONG_LAUNCH_NANOS * noise.long_run_median();
    let (mut times, mut ratios, mut converged) = (0, 0, 0);
    for seed in 0..groups {
        for arm in measure_group(noise, &vec![LONG_LAUNCH_NANOS; arms], &Options::default(), seed) {
            times += u32::from(arm.time.lo.is_some_and(|lo| lo <= truth) && arm.time.hi.is_some_and(|hi| truth <= hi));
            ratios += u32::from(arm.comparison.is_some_and(|comparison| covers(&comparison, 1.0)));
            converged += u32::from(arm.converged);
        }
    }
    let share = |count: u32, of: usize| f64::from(count) / of as f64 / groups as f64;
    (share(times, arms), share(ratios, arms - 1), share(converged, arms))
}

#[test]
fn coverage_under_every_noise_model() {
    let mut wrong = Vec::new();
    for noise in NOISES {
        for (arms, groups) in [(2, 1200), (8, 200)] {
            let (time, ratio, converged) = coverage(noise, arms, groups);
            println!("{noise:?}, {arms} arms: time {time:.3}, speed-up {ratio:.3}, converged {converged:.3}");
            // Times do not show a drift slower than the measurement, and two clocks have no unique median.
            let seen = !matches!(noise, NoiseModel::Drift | NoiseModel::TwoClocks);
            if !NOMINAL_COVERAGE.contains(&ratio) || (seen && !NOMINAL_COVERAGE.contains(&time)) {
                wrong.push(format!("{noise:?}, {arms} arms: {time:.3} {ratio:.3}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn eight_arms_converge_as_often_as_two() {
    let converged = |arms, groups| coverage(NoiseModel::Normal(0.03), arms, groups).2;
    let (two, eight) = (converged(2, 300), converged(8, 75));
    println!("two {two:.3}, eight {eight:.3}");
    assert!(eight >= two - 0.03, "two {two:.3}, eight {eight:.3}");
}

#[test]
fn difference_just_beyond_margin_is_found() {
    let found = |seed| {
        let arms = measure_group(
            NoiseModel::Normal(0.01),
            &[LONG_LAUNCH_NANOS, LONG_LAUNCH_NANOS * 1.025],
            &Options::default(),
            seed,
        );
        arms[1].comparison.unwrap().verdict == Verdict::Slower
    };
    let found = (0..300).filter(|&seed| found(seed)).count();
    println!("{found} of 300 found");
    assert!(found >= 270, "{found} of 300 found");
}
