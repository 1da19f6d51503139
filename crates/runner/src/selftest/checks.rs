//! The checks.

use super::company::{company, order};
use super::rig::{Pair, Rig};
use super::together::{CheckResult, all, alone, answer, beside, ends, is_one, lies_within, options, steps, together};
use calorimeter_timing::{Comparison, Estimate, Failure, Overhead, Stopwatch, Verdict, Window, Work};

/// Name, what is wanted, and how it is checked.
type Named = (&'static str, &'static str, fn(&mut dyn Rig) -> CheckResult);

/// Every check, in the order in which they are made.
pub const ALL: &[Named] = &[
    (
        "empty window",
        "below 1 % of a window, as is the clock's step; where it is taken off, at most a tenth is left",
        empty_window,
    ),
    ("linear", "2 and 4 times the steps take 2 and 4 times as long, within 1 %", linear),
    ("copy", "moves 70 to 102 % of the memory's stated or measured bandwidth", copy),
    (
        "cold and hot",
        "a rotated copy is no faster than a cached one, nor than one far larger than the cache, and more sets change nothing",
        cold_and_hot,
    ),
    ("clocks", "other clocks and a replayed graph read what the first clock reads, within 1 %", clocks),
    ("alone and in company", "a chain takes as long beside a heavier and a lighter work as alone, within 2 %", company),
    ("order", "two chains compared one way and the other have ratios whose product is 1, within 1 %", order),
    ("same against same", "at most 5 % of 20 comparisons find a difference", same),
    ("a 5 % slower kernel", "is SLOWER in at least 95 % of 40 comparisons; one 0.2 % slower is SAME", slower),
    ("device and wall", "a window on the device's clock is no longer than the host saw it", wall),
];

const ELSEWHERE: &str = "does not apply to this device";

fn empty_window(rig: &mut dyn Rig) -> CheckResult {
    let Pair { mut work, mut stopwatch, .. } = rig.spin(1_000)?;
    work.launch()?;
    work.settle()?;
    let granularity = stopwatch.granularity(work.as_mut())?;
    let (empty, step) = (granularity.empty_ns as f64, granularity.step_ns as f64);
    let small = |nanos: f64| nanos <= 0.01 * options().window.as_nanos() as f64;
    let (holds, how) = match stopwatch.overhead() {
        Overhead::Outside => (small(empty), String::new()),
        Overhead::Inside => {
            let left = left(work.as_mut(), stopwatch.as_mut())?;
            // Calling nothing takes its time too. Only what is certainly more than that fails: machines are busy.
            let most = 0.1 * empty + 100.0;
            let (lo, hi) = (left.lo.unwrap_or(left.median), left.hi.unwrap_or(left.median));
            (lo <= most && hi >= -most, format!(", taken off but for {:.0} ns a launch", left.median))
        }
    };
    let found = format!("{} reads {empty} ns{how}; its step is {step} ns", stopwatch.name());
    Ok((Some(holds && small(step)), found))
}

/// Launches nothing, and waits as its work does.
struct Nothing<'a>(&'a mut dyn Work);

impl Work for Nothing<'_> {
    fn launch(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.0.settle()
    }
}

/// What is left of a clock's cost for each launch once the fixed part has been taken off.
fn left(work: &mut dyn Work, stopwatch: &mut dyn Stopwatch) -> Result<Estimate, Failure> {
    const CYCLES: usize = 16;
    const LENGTHS: std::ops::RangeInclusive<u32> = 1..=4;
    let mut windows = Vec::new();
    for launches in std::iter::repeat_n(LENGTHS, CYCLES).flatten() {
        let nanos = stopwatch.window(&mut Nothing(work), launches)?.resolve()?;
        windows.push(Window { launches, nanos });
    }
    Estimate::of(&windows, Overhead::Inside).ok_or_else(|| "there are no windows".into())
}

fn linear(rig: &mut dyn Rig) -> CheckResult {
    let steps = steps(rig)?;
    let (mut once, mut twice, mut four_times) = (rig.spin(steps)?, rig.spin(2 * steps)?, rig.spin(4 * steps)?);
    let mut launch = if rig.launching_takes_long() { Some(rig.spin(1)?) } else { None };
    let pairs = [&mut once, &mut twice, &mut four_times].into_iter().chain(launch.as_mut()).collect();
    let compared = together(pairs, 5)?;
    // What a launch takes by itself, as a share of the first chain: in turns with it, because it changes with the load.
    let (least, most) = compared.get(2).map_or((0.0, 0.0), |launch| (1.0 / ends(launch).1, 1.0 / ends(launch).0));
    let times = |ratio: f64, launch: f64| (1.0 / ratio - launch) / (1.0 - launch);
    let holds = all([2.0, 4.0].iter().zip(&compared).map(|(wanted, compared)| {
        let (lo, hi) = ends(compared);
        is_one(times(hi, least) / wanted, times(lo, most) / wanted, 0.01)
    }));
    let share = compared.get(2).map_or(0.0, |launch| 1.0 / launch.ratio);
    let without =
        if share > 0.0 { format!(" without the launch, {:.1} % of one", 100.0 * share) } else { String::new() };
    let found = format!("{:.3} and {:.3}{without}", times(compared[0].ratio, share), times(compared[1].ratio, share));
    Ok(answer(holds, found))
}

// ANCHOR: check
fn copy(rig: &mut dyn Rig) -> CheckResult {
    let Some(before) = rig.bandwidth()? else { return Ok((None, ELSEWHERE.into())) };
    let mut copy = rig.large_copy()?;
    let (time, bytes) = (alone(&mut copy)?, copy.bytes as f64);
    // Where it is measured and others use it, it is not the same twice.
    let after = rig.bandwidth()?.unwrap_or(before);
    let least = bytes / time.hi.unwrap_or(time.median) / before.max(after);
    let most = bytes / time.lo.unwrap_or(time.median) / before.min(after);
    let shares = format!("{:.0} to {:.0} % of the bandwidth", 100.0 * least, 100.0 * most);
    Ok(answer(lies_within(least, most, 0.7..=1.02), format!("{:.0} GB/s, {shares}", bytes / time.median)))
}
// ANCHOR_END: check

fn cold_and_hot(rig: &mut dyn Rig) -> CheckResult {
    let (bytes, sets) = rig.cached_copy();
    let more = sets * 3 / 2;
    let mut cold = rig.copy(bytes, sets)?;
    let hot = beside(&mut cold, &mut rig.copy(bytes, 1)?, 2)?;
    let colder = beside(&mut cold, &mut rig.copy(bytes, more)?, 3)?;
    // What comes from memory moves no more bytes in a second than a copy that no cache could hold.
    let mut large = rig.large_copy()?;
    let size = cold.bytes as f64 / large.bytes as f64;
    let beyond = beside(&mut cold, &mut large, 4)?;
    // Only what is certainly wrong fails: each of these may be off for a while on a machine that others use.
    let (least, most) = ends(&colder);
    let holds = ends(&hot).1 >= 0.97 && least <= 1.1 && most >= 0.9 && size / ends(&beyond).1 <= 1.1;
    let (gain, flat, rate) = (hot.ratio, 1.0 / colder.ratio, size / beyond.ratio);
    let found =
        format!("cold over hot {gain:.2}; {more} sets over {sets}: {flat:.2}; {rate:.2} of the rate of a large copy");
    Ok((Some(holds), found))
}

fn clocks(rig: &mut dyn Rig) -> CheckResult {
    let steps = steps(rig)?;
    let mut others = rig.other_clocks(steps)?;
    if others.is_empty() {
        return Ok((None, ELSEWHERE.into()));
    }
    let mut first = rig.spin(steps)?;
    let names: Vec<&str> = others.iter().map(|pair| pair.stopwatch.name()).collect();
    let compared = together(std::iter::once(&mut first).chain(&mut others).collect(), 1)?;
    let holds = all(compared.iter().map(|one| {
        let (lo, hi) = ends(one);
        is_one(lo, hi, 0.01)
    }));
    let told = names.iter().zip(&compared).map(|(name, one)| format!("{name} {:.4}", 1.0 / one.ratio));
    Ok(answer(holds, format!("over {}: {}", first.stopwatch.name(), told.collect::<Vec<_>>().join(", "))))
}

fn same(rig: &mut dyn Rig) -> CheckResult {
    const COMPARISONS: u64 = 20;
    let steps = steps(rig)?;
    let (mut wrong, mut off) = (0, Vec::new());
    for seed in 0..COMPARISONS {
        let compared = beside(&mut rig.spin(steps)?, &mut rig.spin(steps)?, seed)?;
        wrong += u32::from(matches!(compared.verdict, Verdict::Faster | Verdict::Slower));
        off.push((compared.ratio - 1.0).abs());
    }
    let worst = off.into_iter().fold(0.0, f64::max);
    Ok((Some(wrong <= 1), format!("{wrong} of {COMPARISONS}; ratios within {:.2} % of 1", 100.0 * worst)))
}

fn slower(rig: &mut dyn Rig) -> CheckResult {
    const COMPARISONS: u64 = 40;
    const LITTLE: u64 = 5;
    let steps = steps(rig)?;
    let mut verdict = |share: f64, seed: u64| -> Result<Comparison, Failure> {
        beside(&mut rig.spin(steps)?, &mut rig.spin((steps as f64 * share).round() as u64)?, seed)
    };
    let (mut found, mut open) = (0, 0);
    for seed in 0..COMPARISONS {
        match verdict(1.05, seed)?.verdict {
            Verdict::Slower => found += 1,
            Verdict::Unclear => open += 1,
            Verdict::Faster | Verdict::Same => {}
        }
    }
    let little = (0..LITTLE).map(|seed| Ok(verdict(1.002, COMPARISONS + seed)?.verdict));
    let little = little.collect::<Result<Vec<Verdict>, Failure>>()?;
    let count = |wanted: Verdict| little.iter().filter(|&&verdict| verdict == wanted).count();
    let (same, unclear) = (count(Verdict::Same), count(Verdict::Unclear));
    // Who scatters too much to see a difference does not deny it.
    let enough = |right: u64, open: u64, of: u64| match (right, right + open) {
        (right, _) if right * 100 >= of * 95 => Some(true),
        (_, possible) if possible * 100 >= of * 95 => None,
        _ => Some(false),
    };
    let holds = all([enough(found, open, COMPARISONS), enough(same as u64, unclear as u64, LITTLE)]);
    let shown = format!("{found} of {COMPARISONS}, {open} unclear; 0.2 %: {same} of {LITTLE} SAME, {unclear} unclear");
    Ok(answer(holds, shown))
}

fn wall(rig: &mut dyn Rig) -> CheckResult {
    const LAUNCHES: u32 = 10;
    let steps = steps(rig)?;
    let Pair { mut work, mut stopwatch, .. } = rig.spin(steps)?;
    let launches = LAUNCHES.next_multiple_of(stopwatch.unit());
    stopwatch.window(work.as_mut(), launches)?.resolve()?;
    let before = stopwatch.now();
    let device = stopwatch.window(work.as_mut(), launches)?.resolve()? as f64;
    let wall = stopwatch.now().saturating_sub(before).as_nanos() as f64;
    Ok((Some(device <= wall * 1.001), format!("{:.3} of the wall time", device / wall)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_timing::{MockWork, Observer, Quiet, Reading, Script};
    use serde_json::Value;

    /// A clock whose windows cost something, and something more for each launch, and whose readings come in steps.
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
            // Every other reading is a step longer.
            self.window ^= self.step;
            Ok(Reading::Now(self.window + self.launch * u64::from(launches)))
        }
    }

    impl Rig for Costly {
        fn spin(&mut self, _: u64) -> Result<Pair, Failure> {
            let (work, _) = MockWork::pair(Script::default());
            Ok(Pair { work: Box::new(work), stopwatch: Box::new(*self), bytes: 0 })
        }
        fn copy(&mut self, _: u64, _: u32) -> Result<Pair, Failure> {
            self.spin(0)
        }
        fn large_copy(&mut self) -> Result<Pair, Failure> {
            self.spin(0)
        }
        fn cached_copy(&self) -> (u64, u32) {
            (0, 0)
        }
        fn other_clocks(&mut self, _: u64) -> Result<Vec<Pair>, Failure> {
            Ok(Vec::new())
        }
        fn observer(&mut self) -> Box<dyn Observer + '_> {
            Box::new(Quiet)
        }
        fn facts(&mut self) -> Value {
            Value::Null
        }
        fn others(&mut self) -> Result<Vec<String>, String> {
            Ok(Vec::new())
        }
        fn bandwidth(&mut self) -> Result<Option<f64>, Failure> {
            Ok(None)
        }
    }

    #[test]
    fn a_cost_that_is_not_taken_off_and_a_coarse_clock_are_found_on_every_kind_of_clock() {
        use Overhead::{Inside, Outside};
        for (overhead, window, launch, step, holds) in [
            (Outside, 0, 0, 1, true),
            (Outside, 65_536, 0, 1, false),
            (Outside, 0, 0, 1 << 15, false),
            (Inside, 65_536, 0, 1, true),
            (Inside, 65_536, 30_000, 1, false),
            (Inside, 65_536, 0, 1 << 15, false),
        ] {
            let (found, said) = empty_window(&mut Costly { overhead, window, launch, step }).unwrap();
            assert_eq!(found, Some(holds), "{said}");
        }
    }
}
