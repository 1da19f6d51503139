//! Interleaved measurement of cases, and the conversion of its results to records.

use super::ranges::Range;
use super::roofline;
use super::sensors::{Sensors, Watch};
use super::state::Arm;
use crate::platforms::{self, Platform};
use crate::worker::event::{Listener, Stage};
use crate::worker::panics;
use crate::worker::poison::{Poisoned, guarded, poisoned};
use crate::worker::scene::Scene;
use calorimeter_case::record::{Estimate, Scatter, Speedup, Telemetry, Window, finite};
use calorimeter_case::{CaseId, Clock, Record, Status};
use calorimeter_timing::{
    self as timing, Measurement, Observer, Options, Overhead, Phase, Series, Silence, State, TimingError,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Launches over which hardware counters are read, outside any window.
const COUNTED: u32 = 3;

/// Measures the arms interleaved, fills their records and compares them with the peaks.
pub fn measure(arms: &mut [Arm], options: &Options, group: &mut Scene<'_>) -> Result<(), Poisoned> {
    let Some(first) = arms.first().map(|arm| arm.record.case.id.clone()) else { return Ok(()) };
    group.listener.touch(&first, Stage::Peaks);
    let peaks = roofline::peaks(arms, &first, group)?;
    time(arms, options, group)?;
    roofline::hold(arms, peaks, group)
}

/// Measures the arms without peaks.
pub fn time(arms: &mut [Arm], options: &Options, group: &mut Scene<'_>) -> Result<(), Poisoned> {
    let cases: Vec<CaseId> = arms.iter().map(|arm| arm.record.case.id.clone()).collect();
    if cases.is_empty() {
        return Ok(());
    }
    let (outcome, telemetry) = timed(arms, &cases, options, group)?;
    let clocks: Vec<Option<String>> = arms.iter().map(|arm| arm.record.execution.stopwatch.clone()).collect();
    let platform = platforms::of(group.operands.device);
    for (arm, outcome) in arms.iter_mut().zip(outcome) {
        let baseline = arm.assigned.against.as_ref().and_then(|id| cases.iter().position(|case| case == id));
        fill(arm, outcome, options.margin, telemetry.as_ref());
        if arm.stopwatch.holds_gaps() {
            arm.record.time.with_gaps_ns = arm.record.time.time_ns.map(|time| time.median);
        }
        arm.record.outcome.warnings.extend(arm.stopwatch.remark());
        count(arm, platform);
        if let (Some(_), Some(Some(of_baseline)), Some(own)) =
            (&arm.record.speedup, baseline.map(|at| &clocks[at]), &arm.record.execution.stopwatch)
            && of_baseline != own
        {
            let warning = format!("the speed-up compares two clocks: {own}, and {of_baseline} for the baseline");
            arm.record.warn(warning);
        }
    }
    Ok(())
}

/// Maximum plausible resolution of a clock; larger values result from long launches of varying duration.
const COARSEST_NS: u64 = 10_000;

type Outcome = Vec<Result<Measurement, TimingError>>;

/// Runs the measurement rounds.
fn timed(
    arms: &mut [Arm],
    cases: &[CaseId],
    options: &Options,
    group: &mut Scene<'_>,
) -> Result<(Outcome, Option<Telemetry>), Poisoned> {
    let mut timed: Vec<timing::Arm<'_>> = Vec::with_capacity(arms.len());
    for arm in arms.iter_mut() {
        let baseline = arm.assigned.against.as_ref().and_then(|id| cases.iter().position(|case| case == id));
        let one = timing::Arm::new(&mut arm.job, arm.stopwatch.as_mut());
        let step = arm.record.preparation.granularity_ns.filter(|&step| step <= COARSEST_NS);
        let one = one.with_step(step.unwrap_or(0));
        timed.push(match baseline {
            Some(baseline) => one.against(baseline),
            None => one,
        });
    }
    let silence = group.context.silence;
    // A probe is short: with sensors, it would start with a warm-up under its own load.
    let sensors = group.context.sensors.as_mut().filter(|_| !group.assignment.is_probe).map(Sensors::begin);
    let listener = &mut *group.listener;
    let range = Range::new(cases.to_vec());
    let mut watcher = Watcher { cases, silence, sensors, range, listener, last: 0, poison: None };
    let outcome = catch_unwind(AssertUnwindSafe(|| timing::measure(&mut timed, options, &mut watcher)));
    let (last, poison) = (watcher.last, watcher.poison.take());
    let telemetry = watcher.sensors.take().and_then(Watch::end);
    if let Some(poison) = poison {
        return Err(poison);
    }
    let case = &cases[last];
    let outcome = guarded(case, || outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))?;
    Ok((outcome, telemetry))
}

/// Reads the hardware counters over additional launches.
fn count(arm: &mut Arm, platform: &dyn Platform) {
    // The counters cover only this process.
    if arm.job.0.is_a_process() {
        return;
    }
    let Some(counted) = platform.counters(&mut arm.job, COUNTED) else { return };
    let Some(telemetry) = &mut arm.record.telemetry else { return };
    let each = |count: u64| Some(count as f64 / f64::from(COUNTED));
    (telemetry.cycles, telemetry.instructions) = (each(counted.cycles), each(counted.instructions));
    telemetry.cache_misses = counted.cache_misses.and_then(each);
}

fn fill(arm: &mut Arm, outcome: Result<Measurement, TimingError>, margin: f64, telemetry: Option<&Telemetry>) {
    let (against, overhead) = (arm.assigned.against.clone(), arm.stopwatch.overhead());
    let record = &mut arm.record;
    let measured = match outcome {
        Ok(measured) => measured,
        Err(error) => {
            record.outcome.status = Status::Failed;
            record.outcome.reason = Some(error.to_string());
            return;
        }
    };
    let median = measured.time.median;
    record.time.time_ns = Some(estimate(measured.time));
    record.time.in_turns_ns = measured.in_turns.map(estimate).map(Box::new);
    state(record, &measured);
    record.time.converged = Some(measured.converged);
    // Enqueuing a launch computes nothing, so that rates are undefined.
    if record.case.regime.clock() != Clock::Enqueuing {
        record.rates.tflops = record.case.flops.and_then(|flops| finite(flops as f64 / median / 1e3));
        record.rates.gbps = record.case.bytes.and_then(|bytes| finite(bytes as f64 / median));
    }
    if measured.comparison.as_ref().is_some_and(|comparison| !comparison.sound) {
        record
            .outcome
            .warnings
            .push("the speed-up drifts too slowly to be measured: its interval may be too narrow".into());
    }
    record.speedup = measured.comparison.zip(against).map(|(comparison, vs)| Speedup {
        vs,
        ratio: comparison.ratio,
        lo: comparison.lo,
        hi: comparison.hi,
        in_turns: measured
            .comparison_in_turns
            .map(|turns| Box::new(Estimate { median: turns.ratio, lo: turns.lo, hi: turns.hi })),
        verdict: comparison.verdict,
        margin: Some(margin),
        rounds_needed: comparison.rounds_needed,
    });
    let Series { min, p05, p95, mad, outliers, autocorrelation, .. } = measured.scatter;
    record.time.scatter = Some(Scatter { min, p05, p95, mad, outliers: outliers as u32, autocorrelation });
    record.outcome.warnings.extend(measured.scatter.warnings());
    record.time.launch_bound = match record.time.busy {
        Some(busy) => Some(busy < BUSY),
        None => record.time.enqueue_ns.map(|enqueue| launch_bound(overhead, median, enqueue)),
    };
    record.telemetry = telemetry.map(|telemetry| {
        Box::new(Telemetry {
            joules: measured.energy.and_then(|energy| finite(energy.joules)),
            joules_lo: measured.energy.and_then(|energy| finite(energy.lo?)),
            joules_hi: measured.energy.and_then(|energy| finite(energy.hi?)),
            repeated_rounds: measured.repeated,
            ..telemetry.clone()
        })
    });
    if !measured.time.sound {
        record
            .outcome
            .warnings
            .push("the times wander more slowly than could be measured: their interval may be too narrow".into());
    }
    if !measured.settled {
        record.outcome.warnings.push("the times still moved when the warm-up had to end".into());
    }
    if measured.spoilt > 0 {
        let warning = format!("throttled: power or temperature limited the device in {} rounds", measured.spoilt);
        record.outcome.warnings.push(warning);
    }
    if measured.discarded > 0 {
        let warning =
            format!("{} windows were discarded: kernels were compiled or tuned during them", measured.discarded);
        record.outcome.warnings.push(warning);
    }
}

fn estimate(time: timing::Estimate) -> Estimate {
    Estimate { median: time.median, lo: time.lo, hi: time.hi }
}

/// Fills in the windows with their clocks, gaps and throttling.
fn state(record: &mut Record, measured: &Measurement) {
    let states = measured.states.iter().copied().map(Some).chain(std::iter::repeat(None));
    let window = |(window, state): (&timing::Window, Option<State>)| Window {
        launches: window.launches,
        nanos: window.nanos,
        clock_mhz: state.and_then(|state| state.clock_mhz),
        held_back: state.is_some_and(|state| state.held_back),
    };
    record.time.windows = measured.windows.iter().zip(states).map(window).collect();
    let with_gaps = measured.windows.iter().zip(&measured.spans);
    let with_gaps: Vec<f64> = with_gaps.map(|(window, &span)| span as f64 / f64::from(window.launches)).collect();
    record.time.with_gaps_ns = timing::median(&with_gaps);
    record.time.busy = record.time.with_gaps_ns.map(|with_gaps| measured.time.median / with_gaps).and_then(finite);
    let clocks: Vec<f64> = measured.states.iter().filter_map(|state| state.clock_mhz.map(f64::from)).collect();
    record.time.clock_mhz = timing::median(&clocks);
    let held = measured.states.iter().filter(|state| state.held_back).count();
    record.time.held_back = (!measured.states.is_empty()).then(|| held as f64 / measured.states.len() as f64);
}

/// Minimum share of busy time; below it, the device waits for the host.
const BUSY: f64 = 0.8;

/// True if the host limits the rate of launches. The slope of a wall clock is the maximum of device and enqueue time,
/// so that it cannot be shorter than the latter.
fn launch_bound(overhead: Overhead, nanos: f64, enqueue: f64) -> bool {
    match overhead {
        Overhead::Inside => enqueue >= 0.8 * nanos,
        Overhead::Outside => nanos < 1.2 * enqueue,
    }
}

/// Reports progress of the measurement and detects a poisoned process between windows.
struct Watcher<'a> {
    cases: &'a [CaseId],
    silence: &'static Silence,
    sensors: Option<Watch<'a>>,
    range: Range,
    listener: &'a mut dyn Listener,
    last: usize,
    poison: Option<Poisoned>,
}

impl Observer for Watcher<'_> {
    fn touch(&mut self, arm: usize, phase: Phase) {
        self.notice();
        self.last = arm;
        self.range.enter(arm);
        let stage = match phase {
            Phase::Calibrate | Phase::WarmUp => Stage::WarmUp,
            Phase::Measure | Phase::Alone => Stage::Measure,
        };
        self.listener.touch(&self.cases[arm], stage);
    }

    fn interrupted(&mut self) -> bool {
        self.notice();
        self.poison.is_some() || self.listener.interrupted()
    }

    fn disturbances(&mut self) -> u64 {
        self.silence.disturbances()
    }

    fn round(&mut self, _: u32) {
        if let Some(sensors) = &mut self.sensors {
            sensors.round();
        }
    }

    fn spoilt(&mut self) -> bool {
        self.sensors.as_mut().is_some_and(Watch::spoilt)
    }

    fn state(&mut self, phase: Phase) -> Option<State> {
        self.sensors.as_mut()?.state(phase)
    }

    fn joules(&mut self) -> Option<f64> {
        self.sensors.as_mut()?.joules()
    }
}

impl Watcher<'_> {
    fn notice(&mut self) {
        if self.poison.is_none()
            && let Some(panic) = panics::on_device()
        {
            self.poison = Some(poisoned(&self.cases[self.last], &panic));
        }
    }
}
