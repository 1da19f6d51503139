//! Checks of the measurement.

use super::isolation::{isolation, order};
use super::measurement::{
    CheckResult, all_hold, compare_pair, compare_with_first, equals_one, interval_ends, is_within, measure_isolated,
    options, spin_steps, with_noise_note,
};
use super::rig::{Rig, TimedWork};
use calorimeter_timing::{Comparison, Failure, Overhead, Stopwatch, TimeEstimate, Verdict, Window, Work};

/// Name, expected result and function.
type CheckDefinition = (&'static str, &'static str, fn(&mut dyn Rig) -> CheckResult);

/// All checks in order.
pub(super) const ALL: &[CheckDefinition] = &[
    ("empty window", "reading and step below 1 % of a window; if subtracted, at most a tenth remains", empty_window),
    ("linear", "2 and 4 times the steps take 2 and 4 times as long, within 1 %", linear),
    ("copy", "70 to 102 % of the stated or measured memory bandwidth", copy),
    (
        "cold and hot",
        "a rotated copy is at most as fast as a cached one and as one beyond the cache, independent of the number of sets",
        cold_and_hot,
    ),
    ("clocks", "other stopwatches and a replayed graph agree with the first stopwatch, within 1 %", clocks),
    ("isolation", "equal time in isolation and interleaved with heavier and lighter work, within 2 %", isolation),
    ("order", "ratios of two chains compared in both orders have the product 1, within 1 %", order),
    ("same against same", "a difference in at most 5 % of 20 comparisons", same_against_same),
    ("a 5 % slower kernel", "SLOWER in at least 95 % of 40 comparisons; a 0.2 % slower one is SAME", slower_kernel),
    ("device and wall", "device time of a window at most its wall time", device_and_wall),
];

/// Arms of the repeated comparisons of this file, which take most of the time.
pub(super) const COMPARED_ARMS: u32 = 2 * (SAME_COMPARISONS + SLOWER_COMPARISONS + SMALL_COMPARISONS);

/// Comparisons of a chain with itself.
const SAME_COMPARISONS: u32 = 20;
/// Comparisons with a chain that is 5 % longer.
const SLOWER_COMPARISONS: u32 = 40;
/// Comparisons with a chain that is 0.2 % longer.
const SMALL_COMPARISONS: u32 = 5;

const NOT_APPLICABLE: &str = "does not apply to this device";

fn empty_window(rig: &mut dyn Rig) -> CheckResult {
    let TimedWork { mut work, mut stopwatch, .. } = rig.spin(1_000)?;
    work.launch()?;
    work.synchronize()?;
    let granularity = stopwatch.resolution(work.as_mut())?;
    let (empty, step) = (granularity.empty_ns as f64, granularity.step_ns as f64);
    let small = |nanos: f64| nanos <= 0.01 * options().window.as_nanos() as f64;
    let (holds, note) = match stopwatch.overhead() {
        Overhead::Excluded => (small(empty), String::new()),
        Overhead::Included => {
            let residual = residual_overhead(work.as_mut(), stopwatch.as_mut())?;
            // An empty call takes time as well. Only a significant excess fails, since the machine may be busy.
            let limit = 0.1 * empty + 100.0;
            let (lo, hi) = (residual.lo.unwrap_or(residual.median), residual.hi.unwrap_or(residual.median));
            (lo <= limit && hi >= -limit, format!(", subtracted except for {:.0} ns per launch", residual.median))
        }
    };
    let found = format!("{} reads {empty} ns{note}; step {step} ns", stopwatch.name());
    Ok((Some(holds && small(step)), found))
}

/// Work that launches nothing, and synchronizes like the wrapped work.
struct EmptyWork<'a>(&'a mut dyn Work);

impl Work for EmptyWork<'_> {
    fn launch(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), Failure> {
        self.0.synchronize()
    }
}

/// Overhead of the stopwatch per launch that remains after its fixed overhead was subtracted.
fn residual_overhead(work: &mut dyn Work, stopwatch: &mut dyn Stopwatch) -> Result<TimeEstimate, Failure> {
    const CYCLES: usize = 16;
    const LENGTHS: std::ops::RangeInclusive<u32> = 1..=4;
    let mut windows = Vec::new();
    for launches in std::iter::repeat_n(LENGTHS, CYCLES).flatten() {
        let nanos = stopwatch.window(&mut EmptyWork(work), launches)?.resolve()?;
        windows.push(Window { launches, nanos });
    }
    TimeEstimate::from_windows(&windows, Overhead::Included).ok_or_else(|| "no windows measured".into())
}

fn linear(rig: &mut dyn Rig) -> CheckResult {
    let steps = spin_steps(rig)?;
    let (mut once, mut twice, mut four_times) = (rig.spin(steps)?, rig.spin(2 * steps)?, rig.spin(4 * steps)?);
    let mut launch = if rig.has_slow_launches() { Some(rig.spin(1)?) } else { None };
    let pairs = [&mut once, &mut twice, &mut four_times].into_iter().chain(launch.as_mut()).collect();
    let compared = compare_with_first(pairs, 5)?;
    // Launch overhead as a share of the first chain; interleaved with it, since it depends on the load.
    let (min_share, max_share) =
        compared.get(2).map_or((0.0, 0.0), |launch| (1.0 / interval_ends(launch).1, 1.0 / interval_ends(launch).0));
    let times = |ratio: f64, launch: f64| (1.0 / ratio - launch) / (1.0 - launch);
    let holds = all_hold([2.0, 4.0].iter().zip(&compared).map(|(wanted, compared)| {
        let (lo, hi) = interval_ends(compared);
        equals_one(times(hi, min_share) / wanted, times(lo, max_share) / wanted, 0.01)
    }));
    let share = compared.get(2).map_or(0.0, |launch| 1.0 / launch.ratio);
    let note = if share > 0.0 { format!(" without launch overhead ({:.1} %)", 100.0 * share) } else { String::new() };
    let found = format!("{:.3} and {:.3}{note}", times(compared[0].ratio, share), times(compared[1].ratio, share));
    Ok(with_noise_note(holds, found))
}

// ANCHOR: check
fn copy(rig: &mut dyn Rig) -> CheckResult {
    let Some(before) = rig.bandwidth()? else { return Ok((None, NOT_APPLICABLE.into())) };
    let mut copy = rig.large_copy()?;
    let (time, bytes) = (measure_isolated(&mut copy)?, copy.bytes as f64);
    // A measured bandwidth of shared memory varies between measurements.
    let after = rig.bandwidth()?.unwrap_or(before);
    let lo = bytes / time.hi.unwrap_or(time.median) / before.max(after);
    let hi = bytes / time.lo.unwrap_or(time.median) / before.min(after);
    let shares = format!("{:.0} to {:.0} % of the bandwidth", 100.0 * lo, 100.0 * hi);
    Ok(with_noise_note(is_within(lo, hi, 0.7..=1.02), format!("{:.0} GB/s, {shares}", bytes / time.median)))
}
// ANCHOR_END: check

fn cold_and_hot(rig: &mut dyn Rig) -> CheckResult {
    let (bytes, sets) = rig.cached_copy();
    let more = sets * 3 / 2;
    let mut cold = rig.copy(bytes, sets)?;
    let hot = compare_pair(&mut cold, &mut rig.copy(bytes, 1)?, 2)?;
    let colder = compare_pair(&mut cold, &mut rig.copy(bytes, more)?, 3)?;
    // A copy from memory is not faster than a copy that exceeds every cache.
    let mut large = rig.large_copy()?;
    let size = cold.bytes as f64 / large.bytes as f64;
    let beyond = compare_pair(&mut cold, &mut large, 4)?;
    // Only significant deviations fail, since other load may disturb each of these for a while.
    let (lo, hi) = interval_ends(&colder);
    let holds = interval_ends(&hot).1 >= 0.97 && lo <= 1.1 && hi >= 0.9 && size / interval_ends(&beyond).1 <= 1.1;
    let (gain, flat, rate) = (hot.ratio, 1.0 / colder.ratio, size / beyond.ratio);
    let found = format!("cold/hot {gain:.2}; {more}/{sets} sets {flat:.2}; {rate:.2} of the rate of a large copy");
    Ok((Some(holds), found))
}

fn clocks(rig: &mut dyn Rig) -> CheckResult {
    let steps = spin_steps(rig)?;
    let mut others = rig.other_clocks(steps)?;
    if others.is_empty() {
        return Ok((None, NOT_APPLICABLE.into()));
    }
    let mut first = rig.spin(steps)?;
    let names: Vec<&str> = others.iter().map(|pair| pair.stopwatch.name()).collect();
    let compared = compare_with_first(std::iter::once(&mut first).chain(&mut others).collect(), 1)?;
    let holds = all_hold(compared.iter().map(|one| {
        let (lo, hi) = interval_ends(one);
        equals_one(lo, hi, 0.01)
    }));
    let ratios = names.iter().zip(&compared).map(|(name, one)| format!("{name} {:.4}", 1.0 / one.ratio));
    Ok(with_noise_note(
        holds,
        format!("relative to {}: {}", first.stopwatch.name(), ratios.collect::<Vec<_>>().join(", ")),
    ))
}

fn same_against_same(rig: &mut dyn Rig) -> CheckResult {
    let steps = spin_steps(rig)?;
    let (mut wrong, mut deviations) = (0, Vec::new());
    for seed in 0..SAME_COMPARISONS.into() {
        let compared = compare_pair(&mut rig.spin(steps)?, &mut rig.spin(steps)?, seed)?;
        wrong += u32::from(matches!(compared.verdict, Verdict::Faster | Verdict::Slower));
        deviations.push((compared.ratio - 1.0).abs());
    }
    let worst = deviations.into_iter().fold(0.0, f64::max);
    Ok((Some(wrong <= 1), format!("{wrong} of {SAME_COMPARISONS}; ratios within {:.2} % of 1", 100.0 * worst)))
}

fn slower_kernel(rig: &mut dyn Rig) -> CheckResult {
    let steps = spin_steps(rig)?;
    let mut verdict = |share: f64, seed: u64| -> Result<Comparison, Failure> {
        compare_pair(&mut rig.spin(steps)?, &mut rig.spin((steps as f64 * share).round() as u64)?, seed)
    };
    let (mut found, mut unclear) = (0, 0);
    for seed in 0..SLOWER_COMPARISONS.into() {
        match verdict(1.05, seed)?.verdict {
            Verdict::Slower => found += 1,
            Verdict::Unclear => unclear += 1,
            Verdict::Faster | Verdict::Same => {}
        }
    }
    let small = (0..SMALL_COMPARISONS).map(|seed| Ok(verdict(1.002, (SLOWER_COMPARISONS + seed).into())?.verdict));
    let small = small.collect::<Result<Vec<Verdict>, Failure>>()?;
    let count = |wanted: Verdict| small.iter().filter(|&&verdict| verdict == wanted).count() as u32;
    let (same, small_unclear) = (count(Verdict::Same), count(Verdict::Unclear));
    // Missed differences due to noise are inconclusive, not a failure.
    let is_enough = |correct: u32, unclear: u32, total: u32| match (correct, correct + unclear) {
        (correct, _) if correct * 100 >= total * 95 => Some(true),
        (_, possible) if possible * 100 >= total * 95 => None,
        _ => Some(false),
    };
    let holds =
        all_hold([is_enough(found, unclear, SLOWER_COMPARISONS), is_enough(same, small_unclear, SMALL_COMPARISONS)]);
    let result = format!(
        "{found} of {SLOWER_COMPARISONS}, {unclear} unclear; 0.2 %: {same} of {SMALL_COMPARISONS} SAME, {small_unclear} unclear"
    );
    Ok(with_noise_note(holds, result))
}

fn device_and_wall(rig: &mut dyn Rig) -> CheckResult {
    const LAUNCHES: u32 = 10;
    let steps = spin_steps(rig)?;
    let TimedWork { mut work, mut stopwatch, .. } = rig.spin(steps)?;
    let launches = LAUNCHES.next_multiple_of(stopwatch.launch_multiple());
    stopwatch.window(work.as_mut(), launches)?.resolve()?;
    let before = stopwatch.now();
    let device = stopwatch.window(work.as_mut(), launches)?.resolve()? as f64;
    let wall = stopwatch.now().saturating_sub(before).as_nanos() as f64;
    Ok((Some(device <= wall * 1.001), format!("{:.3} of the wall time", device / wall)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_timing::{MockWork, NullObserver, Observer, Reading, Script};
    use serde_json::Value;

    /// Stopwatch with overhead per window and per launch, and with a coarse step.
    #[derive(Clone, Copy)]
    struct Costly {
        overhead: Overhead,
        window: u64,
        launch: u64,
        step: u64,
    }

    impl Stopwatch for Costly {
        fn name(&self) -> &'static str {
            "costly"
        }
        fn overhead(&self) -> Overhead {
            self.overhead
        }
        fn window(&mut self, _: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
            // Every other reading is longer by one step.
            self.window ^= self.step;
            Ok(Reading::Ready(self.window + self.launch * u64::from(launches)))
        }
    }

    impl Rig for Costly {
        fn spin(&mut self, _: u64) -> Result<TimedWork, Failure> {
            let (work, _) = MockWork::pair(Script::default());
            Ok(TimedWork { work: Box::new(work), stopwatch: Box::new(*self), bytes: 0 })
        }
        fn copy(&mut self, _: u64, _: u32) -> Result<TimedWork, Failure> {
            self.spin(0)
        }
        fn large_copy(&mut self) -> Result<TimedWork, Failure> {
            self.spin(0)
        }
        fn cached_copy(&self) -> (u64, u32) {
            (0, 0)
        }
        fn other_clocks(&mut self, _: u64) -> Result<Vec<TimedWork>, Failure> {
            Ok(Vec::new())
        }
        fn observer(&mut self) -> Box<dyn Observer + '_> {
            Box::new(NullObserver)
        }
        fn facts(&mut self) -> Value {
            Value::Null
        }
        fn other_users(&mut self) -> Result<Vec<String>, String> {
            Ok(Vec::new())
        }
        fn bandwidth(&mut self) -> Result<Option<f64>, Failure> {
            Ok(None)
        }
    }

    #[test]
    fn overhead_and_coarse_steps_are_detected() {
        use Overhead::{Excluded, Included};
        for (overhead, window, launch, step, holds) in [
            (Excluded, 0, 0, 1, true),
            (Excluded, 65_536, 0, 1, false),
            (Excluded, 0, 0, 1 << 15, false),
            (Included, 65_536, 0, 1, true),
            (Included, 65_536, 30_000, 1, false),
            (Included, 65_536, 0, 1 << 15, false),
        ] {
            let (passed, found) = empty_window(&mut Costly { overhead, window, launch, step }).unwrap();
            assert_eq!(passed, Some(holds), "{found}");
        }
    }
}
