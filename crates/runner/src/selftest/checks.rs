//! The checks.

use super::rig::{Pair, Rig};
use calorimeter_timing::{
    Arm, Comparison, Estimate, Failure, Options, Overhead, Quiet, Stopwatch, Verdict, Window, Work, measure,
};
use std::time::Duration;

/// Whether it holds and the figure; `None` where it does not apply.
type Found = Result<Option<(bool, String)>, Failure>;

/// Name, what is wanted, and how it is checked.
type Named = (&'static str, &'static str, fn(&mut dyn Rig) -> Found);

/// Every check, in the order in which they are made.
pub const ALL: &[Named] = &[
    (
        "empty window",
        "below 1 % of a window, as is the clock's step; where it is taken off, at most a tenth is left",
        empty_window,
    ),
    ("linear", "2 and 4 times the steps take 2 and 4 times as long, within 1 %", linear),
    ("copy", "moves 70 to 102 % of the memory's stated or measured bandwidth", copy),
    ("cold and hot", "a rotated copy is no faster than a cached one, and more sets change nothing", cold_and_hot),
    ("graph", "a replayed graph takes as long as the stream, within 1 %", graph),
    ("same against same", "at most 5 % of 20 comparisons find a difference", same),
    ("a 5 % slower kernel", "is SLOWER in at least 95 % of 40 comparisons; one 0.2 % slower is SAME", slower),
    ("device and wall", "a window on the device's clock is no longer than the host saw it", wall),
];

fn options() -> Options {
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

fn alone(pair: &mut Pair) -> Result<Estimate, Failure> {
    let mut arms = [Arm::new(pair.work.as_mut(), pair.stopwatch.as_mut())];
    Ok(measure(&mut arms, &options(), &mut Quiet).remove(0)?.time)
}

/// The first compared with each of the others, all in alternation: what drifts hits them alike.
fn together<const N: usize>(pairs: [&mut Pair; N], seed: u64) -> Result<Vec<Comparison>, Failure> {
    let mut arms: Vec<Arm<'_>> = Vec::with_capacity(N);
    for pair in pairs {
        let arm = Arm::new(pair.work.as_mut(), pair.stopwatch.as_mut());
        arms.push(if arms.is_empty() { arm } else { arm.against(0) });
    }
    let options = Options { seed, ..options() };
    let measured = measure(&mut arms, &options, &mut Quiet).into_iter().skip(1);
    measured.map(|one| one?.comparison.ok_or_else(|| "the two were not compared".into())).collect()
}

fn beside(base: &mut Pair, other: &mut Pair, seed: u64) -> Result<Comparison, Failure> {
    Ok(together([base, other], seed)?.remove(0))
}

/// How many steps take about as long as wanted.
fn steps(rig: &mut dyn Rig) -> Result<u64, Failure> {
    const GUESS: u64 = 20_000;
    let took = alone(&mut rig.spin(GUESS)?)?.median;
    Ok(((GUESS as f64 * rig.spin_nanos() / took.max(1.0)) as u64).max(1_000))
}

fn empty_window(rig: &mut dyn Rig) -> Found {
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
    Ok(Some((holds && small(step), found)))
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

fn linear(rig: &mut dyn Rig) -> Found {
    let steps = steps(rig)?;
    let mut longer = [rig.spin(2 * steps)?, rig.spin(4 * steps)?];
    let [twice, four_times] = &mut longer;
    let compared = together([&mut rig.spin(steps)?, twice, four_times], 5)?;
    let launch = match rig.launching_takes_long() {
        true => alone(&mut rig.spin(1)?)?.median / alone(&mut rig.spin(steps)?)?.median,
        false => 0.0,
    };
    let ratios = [0, 1].map(|one: usize| (1.0 / compared[one].ratio - launch) / (1.0 - launch));
    let holds = (ratios[0] / 2.0 - 1.0).abs() <= 0.01 && (ratios[1] / 4.0 - 1.0).abs() <= 0.01;
    let without =
        if launch > 0.0 { format!(" without the launch, {:.1} % of one", 100.0 * launch) } else { String::new() };
    Ok(Some((holds, format!("{:.3} and {:.3}{without}", ratios[0], ratios[1]))))
}

// ANCHOR: check
fn copy(rig: &mut dyn Rig) -> Found {
    let Some(peak) = rig.bandwidth()? else { return Ok(None) };
    let mut copy = rig.large_copy()?;
    let gbps = copy.bytes as f64 / alone(&mut copy)?.median;
    let share = gbps / peak;
    Ok(Some(((0.7..=1.02).contains(&share), format!("{gbps:.0} GB/s, {:.0} % of {peak:.0}", 100.0 * share))))
}
// ANCHOR_END: check

fn cold_and_hot(rig: &mut dyn Rig) -> Found {
    let (bytes, sets) = rig.cached_copy();
    let hot = alone(&mut rig.copy(bytes, 1)?)?;
    let mut cold_copy = rig.copy(bytes, sets)?;
    let cold = alone(&mut cold_copy)?;
    let colder = beside(&mut cold_copy, &mut rig.copy(bytes, sets * 3 / 2)?, 3)?;
    let (gain, flat) = (cold.median / hot.median, 1.0 / colder.ratio);
    let holds = gain >= 0.97 && (0.9..=1.1).contains(&flat);
    let found = format!("cold over hot {gain:.2}; {} sets over {sets}: {flat:.2}", sets * 3 / 2);
    Ok(Some((holds, found)))
}

fn graph(rig: &mut dyn Rig) -> Found {
    let steps = steps(rig)?;
    let Some(mut graph) = rig.graph(steps)? else { return Ok(None) };
    let compared = beside(&mut rig.spin(steps)?, &mut graph, 1)?;
    Ok(Some(((compared.ratio - 1.0).abs() <= 0.01, format!("stream over graph {:.4}", compared.ratio))))
}

fn same(rig: &mut dyn Rig) -> Found {
    const COMPARISONS: u64 = 20;
    let steps = steps(rig)?;
    let (mut wrong, mut off) = (0, Vec::new());
    for seed in 0..COMPARISONS {
        let compared = beside(&mut rig.spin(steps)?, &mut rig.spin(steps)?, seed)?;
        wrong += u32::from(matches!(compared.verdict, Verdict::Faster | Verdict::Slower));
        off.push((compared.ratio - 1.0).abs());
    }
    let worst = off.into_iter().fold(0.0, f64::max);
    Ok(Some((wrong <= 1, format!("{wrong} of {COMPARISONS}; ratios within {:.2} % of 1", 100.0 * worst))))
}

fn slower(rig: &mut dyn Rig) -> Found {
    const COMPARISONS: u64 = 40;
    let steps = steps(rig)?;
    let mut verdict = |share: f64, seed: u64| -> Result<Comparison, Failure> {
        beside(&mut rig.spin(steps)?, &mut rig.spin((steps as f64 * share).round() as u64)?, seed)
    };
    let mut found = 0;
    for seed in 0..COMPARISONS {
        found += u64::from(verdict(1.05, seed)?.verdict == Verdict::Slower);
    }
    let little = verdict(1.002, COMPARISONS)?;
    let holds = found * 100 >= COMPARISONS * 95 && little.verdict == Verdict::Same;
    let shown = format!("found in {found} of {COMPARISONS}; 0.2 %: {:.4}x {}", little.ratio, little.verdict);
    Ok(Some((holds, shown)))
}

fn wall(rig: &mut dyn Rig) -> Found {
    const LAUNCHES: u32 = 10;
    let steps = steps(rig)?;
    let Pair { mut work, mut stopwatch, .. } = rig.spin(steps)?;
    let launches = LAUNCHES.next_multiple_of(stopwatch.unit());
    stopwatch.window(work.as_mut(), launches)?.resolve()?;
    let before = stopwatch.now();
    let device = stopwatch.window(work.as_mut(), launches)?.resolve()? as f64;
    let wall = stopwatch.now().saturating_sub(before).as_nanos() as f64;
    Ok(Some((device <= wall * 1.001, format!("{:.3} of the wall time", device / wall))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_timing::{MockWork, Reading, Script};

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
        fn graph(&mut self, _: u64) -> Result<Option<Pair>, Failure> {
            Ok(None)
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
            let (found, said) = empty_window(&mut Costly { overhead, window, launch, step }).unwrap().unwrap();
            assert_eq!(found, holds, "{said}");
        }
    }
}
