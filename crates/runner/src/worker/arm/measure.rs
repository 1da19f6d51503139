//! Interleaved measurement of cases, and the conversion of its results to records.

use super::nvtx_range::CaseRange;
use super::roofline;
use super::state::CaseArm;
use crate::worker::event::{Stage, WorkerListener};
use crate::worker::group_context::GroupContext;
use crate::worker::panics;
use crate::worker::poison::{PoisonedProcess, catch_poison, poisoned_by};
use crate::worker::protocol::AssignmentPurpose;
use calorimeter_case::record::{Estimate, Speedup, Telemetry, WindowRecord, finite};
use calorimeter_case::{CaseId, Clock, Record, Status, Warning};
use calorimeter_probe::platforms::{self, Platform};
use calorimeter_probe::sensors::{SensorWatch, Sensors};
use calorimeter_timing::{
    self as timing, DeviceState, JitMonitor, Measurement, Observer, Options, Overhead, Phase, TimingError,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Launches over which hardware counters are read, outside any window.
const COUNTED_LAUNCHES: u32 = 3;

/// Measures the arms interleaved, fills their records and compares them with the peaks.
pub(crate) fn measure(
    arms: &mut [CaseArm],
    options: &Options,
    group: &mut GroupContext<'_>,
) -> Result<(), PoisonedProcess> {
    let Some(first) = arms.first().map(|arm| arm.record.case.id.clone()) else { return Ok(()) };
    group.listener.report_progress(&first, Stage::Peaks);
    let peaks = roofline::peaks(arms, &first, group)?;
    time(arms, options, group)?;
    roofline::compare_with_peaks(arms, peaks, group)
}

/// Measures the arms without peaks.
pub(crate) fn time(
    arms: &mut [CaseArm],
    options: &Options,
    group: &mut GroupContext<'_>,
) -> Result<(), PoisonedProcess> {
    let cases: Vec<CaseId> = arms.iter().map(|arm| arm.record.case.id.clone()).collect();
    if cases.is_empty() {
        return Ok(());
    }
    let position =
        |arm: &CaseArm| arm.assigned.baseline.as_ref().and_then(|id| cases.iter().position(|case| case == id));
    let baselines: Vec<Option<usize>> = arms.iter().map(position).collect();
    let (outcome, telemetry) = run_rounds(arms, &cases, &baselines, options, group)?;
    let clocks: Vec<Option<String>> = arms.iter().map(|arm| arm.record.execution.stopwatch.clone()).collect();
    let platform = platforms::for_device(group.operands.device);
    let mut interleaved = Vec::with_capacity(arms.len());
    for ((arm, outcome), &baseline) in arms.iter_mut().zip(outcome).zip(&baselines) {
        interleaved.push(outcome.as_ref().ok().and_then(|measured| measured.interleaved_comparison));
        fill_record(arm, outcome, options.margin, telemetry.as_ref());
        if arm.stopwatch.includes_gaps() {
            arm.record.time.with_gaps_ns = arm.record.time.time_ns.map(|time| time.median);
        }
        arm.record.warnings.extend(arm.stopwatch.warning());
        read_counters(arm, platform);
        if let (Some(_), Some(Some(of_baseline)), Some(own)) =
            (&arm.record.speedup, baseline.map(|at| &clocks[at]), &arm.record.execution.stopwatch)
            && of_baseline != own
        {
            arm.record.warnings.push(Warning::mixed_clocks(own, of_baseline));
        }
    }
    let launch_bound: Vec<Option<bool>> = arms.iter().map(|arm| arm.record.time.launch_bound).collect();
    for ((arm, comparison), baseline) in arms.iter_mut().zip(interleaved).zip(baselines) {
        if let (Some(comparison), Some(baseline)) = (comparison, baseline) {
            prefer_interleaved_speedup(&mut arm.record, &comparison, launch_bound[baseline], options.precision);
        }
    }
    Ok(())
}

/// Replaces the speed-up of isolated times by the interleaved speed-up, if either the case or its baseline is
/// launch-bound. In isolation, the device of the launch-bound one is idle between launches, and is not throttled like the
/// other one: a bf16 GEMM of 23.9 µs took 27.8 µs at 1560 MHz, and the launch-bound GEMM of another process 23.5 µs at
/// 1980 MHz.
fn prefer_interleaved_speedup(
    record: &mut Record,
    interleaved: &timing::Comparison,
    baseline: Option<bool>,
    precision: f64,
) {
    let differ = record.time.launch_bound.zip(baseline).is_some_and(|(own, baseline)| own != baseline);
    let Some(speedup) = record.speedup.as_mut().filter(|_| differ) else { return };
    (speedup.ratio, speedup.lo, speedup.hi) = (interleaved.ratio, interleaved.lo, interleaved.hi);
    (speedup.verdict, speedup.rounds_needed, speedup.in_turns) = (interleaved.verdict, interleaved.rounds_needed, None);
    let is_precise = interleaved.relative_half_width().is_some_and(|width| width <= precision);
    record.time.converged = record.time.converged.map(|converged| converged && is_precise);
    if !interleaved.sound {
        record.warnings.push(Warning::slow_speedup_drift());
    }
    record.warnings.push(Warning::interleaved_speedup());
}

/// Maximum plausible resolution of a clock; larger values result from long launches of varying duration.
const MAX_STEP_NS: u64 = 10_000;

type TimingOutcomes = Vec<Result<Measurement, TimingError>>;

/// Runs the measurement rounds.
fn run_rounds(
    arms: &mut [CaseArm],
    cases: &[CaseId],
    baselines: &[Option<usize>],
    options: &Options,
    group: &mut GroupContext<'_>,
) -> Result<(TimingOutcomes, Option<Telemetry>), PoisonedProcess> {
    let mut timed: Vec<timing::Arm<'_>> = Vec::with_capacity(arms.len());
    for (arm, &baseline) in arms.iter_mut().zip(baselines) {
        let one = timing::Arm::new(&mut arm.job, arm.stopwatch.as_mut());
        let step = arm.record.preparation.granularity_ns.filter(|&step| step <= MAX_STEP_NS);
        let one = one.with_clock_step(step.unwrap_or(0));
        timed.push(match baseline {
            Some(baseline) => one.against(baseline),
            None => one,
        });
    }
    let silence = group.context.silence;
    // A probe is short: with sensors, it would start with a warm-up under its own load.
    let is_probe = matches!(group.assignment.purpose, AssignmentPurpose::ProbeInterference(_));
    let sensors = group.context.sensors.as_mut().filter(|_| !is_probe).map(Sensors::watch);
    let listener = &mut *group.listener;
    let range = CaseRange::new(cases.to_vec());
    let mut watcher = MeasurementObserver { cases, silence, sensors, range, listener, last: 0, poison: None };
    let outcome = catch_unwind(AssertUnwindSafe(|| timing::measure(&mut timed, options, &mut watcher)));
    let (last, poison) = (watcher.last, watcher.poison.take());
    let telemetry = watcher.sensors.take().and_then(SensorWatch::finish);
    if let Some(poison) = poison {
        return Err(poison);
    }
    let case = &cases[last];
    let outcome = catch_poison(case, || outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))?;
    Ok((outcome, telemetry))
}

/// Reads the hardware counters over additional launches.
fn read_counters(arm: &mut CaseArm, platform: &dyn Platform) {
    // The counters cover only this process.
    if arm.job.0.is_process() {
        return;
    }
    let Some(counted) = platform.sensing().and_then(|sensing| sensing.counters(&mut arm.job, COUNTED_LAUNCHES)) else {
        return;
    };
    let Some(telemetry) = &mut arm.record.telemetry else { return };
    let each = |count: u64| Some(count as f64 / f64::from(COUNTED_LAUNCHES));
    (telemetry.cycles, telemetry.instructions) = (each(counted.cycles), each(counted.instructions));
    telemetry.cache_misses = counted.cache_misses.and_then(each);
}

fn fill_record(
    arm: &mut CaseArm,
    outcome: Result<Measurement, TimingError>,
    margin: f64,
    telemetry: Option<&Telemetry>,
) {
    let (against, overhead) = (arm.assigned.baseline.clone(), arm.stopwatch.overhead());
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
    record.time.in_turns_ns = measured.interleaved.map(estimate).map(Box::new);
    fill_windows(record, &measured);
    record.time.converged = Some(measured.converged);
    // Enqueuing a launch computes nothing, so that rates are undefined.
    if record.case.regime.clock() != Clock::Enqueuing {
        record.rates.tflops = record.case.flops.and_then(|flops| finite(flops as f64 / median / 1e3));
        record.rates.gbps = record.case.bytes.and_then(|bytes| finite(bytes as f64 / median));
    }
    if measured.comparison.as_ref().is_some_and(|comparison| !comparison.sound) {
        record.warnings.push(Warning::slow_speedup_drift());
    }
    record.speedup = measured.comparison.zip(against).map(|(comparison, vs)| Speedup {
        vs,
        ratio: comparison.ratio,
        lo: comparison.lo,
        hi: comparison.hi,
        in_turns: measured
            .interleaved_comparison
            .map(|turns| Box::new(Estimate { median: turns.ratio, lo: turns.lo, hi: turns.hi })),
        verdict: comparison.verdict,
        margin: Some(margin),
        rounds_needed: comparison.rounds_needed,
    });
    record.time.scatter = Some(measured.scatter.values);
    record.warnings.extend(measured.scatter.warnings());
    record.time.launch_bound = match record.time.busy {
        Some(busy) => Some(busy < MIN_BUSY_SHARE),
        None => record.time.enqueue_ns.map(|enqueue| is_launch_bound(overhead, median, enqueue)),
    };
    record.telemetry = telemetry.map(|telemetry| {
        Box::new(Telemetry {
            joules: measured.energy.and_then(|energy| finite(energy.joules)),
            joules_lo: measured.energy.and_then(|energy| finite(energy.lo?)),
            joules_hi: measured.energy.and_then(|energy| finite(energy.hi?)),
            repeated_rounds: measured.repeated_rounds,
            ..telemetry.clone()
        })
    });
    if !measured.time.sound {
        record.warnings.push(Warning::slow_drift());
    }
    if !measured.reached_plateau {
        record.warnings.push(Warning::no_plateau());
    }
    if measured.throttled_rounds > 0 {
        record.warnings.push(Warning::throttled(measured.throttled_rounds));
    }
    if measured.discarded > 0 {
        record.warnings.push(Warning::discarded_windows(measured.discarded));
    }
}

fn estimate(time: timing::TimeEstimate) -> Estimate {
    Estimate { median: time.median, lo: time.lo, hi: time.hi }
}

/// Fills in the windows with their clocks, gaps and throttling.
fn fill_windows(record: &mut Record, measured: &Measurement) {
    let states = measured.states.iter().copied().map(Some).chain(std::iter::repeat(None));
    let window = |(window, state): (&timing::Window, Option<DeviceState>)| WindowRecord {
        launches: window.launches,
        nanos: window.nanos,
        clock_mhz: state.and_then(|state| state.clock_mhz),
        held_back: state.is_some_and(|state| state.throttled),
    };
    record.time.windows = measured.windows.iter().zip(states).map(window).collect();
    let with_gaps = measured.windows.iter().zip(&measured.spans);
    let with_gaps: Vec<f64> = with_gaps.map(|(window, &span)| span as f64 / f64::from(window.launches)).collect();
    record.time.with_gaps_ns = timing::median(&with_gaps);
    record.time.busy = record.time.with_gaps_ns.map(|with_gaps| measured.time.median / with_gaps).and_then(finite);
    let clocks: Vec<f64> = measured.states.iter().filter_map(|state| state.clock_mhz.map(f64::from)).collect();
    record.time.clock_mhz = timing::median(&clocks);
    let held = measured.states.iter().filter(|state| state.throttled).count();
    record.time.held_back = (!measured.states.is_empty()).then(|| held as f64 / measured.states.len() as f64);
}

/// Minimum share of busy time; below it, the device waits for the host.
const MIN_BUSY_SHARE: f64 = 0.8;

/// True if the host limits the rate of launches. The slope of a wall clock is the maximum of device and enqueue time,
/// so that it cannot be shorter than the latter.
fn is_launch_bound(overhead: Overhead, nanos: f64, enqueue: f64) -> bool {
    match overhead {
        Overhead::Included => enqueue >= 0.8 * nanos,
        Overhead::Excluded => nanos < 1.2 * enqueue,
    }
}

/// Reports progress of the measurement and detects a poisoned process between windows.
struct MeasurementObserver<'a> {
    cases: &'a [CaseId],
    silence: &'static JitMonitor,
    sensors: Option<SensorWatch<'a>>,
    range: CaseRange,
    listener: &'a mut dyn WorkerListener,
    last: usize,
    poison: Option<PoisonedProcess>,
}

impl Observer for MeasurementObserver<'_> {
    fn before_launch(&mut self, arm: usize, phase: Phase) {
        self.check_poison();
        self.last = arm;
        self.range.enter(arm);
        let stage = match phase {
            Phase::Calibrate | Phase::WarmUp => Stage::WarmUp,
            Phase::Measure | Phase::Isolated => Stage::Measure,
        };
        self.listener.report_progress(&self.cases[arm], stage);
    }

    fn interrupted(&mut self) -> bool {
        self.check_poison();
        self.poison.is_some() || self.listener.interrupted()
    }

    fn jit_events(&mut self) -> u64 {
        self.silence.jit_events()
    }

    fn after_round(&mut self, _: u32) {
        if let Some(sensors) = &mut self.sensors {
            sensors.end_round();
        }
    }

    fn must_repeat_round(&mut self) -> bool {
        self.sensors.as_mut().is_some_and(SensorWatch::was_throttled)
    }

    fn state(&mut self, phase: Phase) -> Option<DeviceState> {
        self.sensors.as_mut()?.state(phase)
    }

    fn joules(&mut self) -> Option<f64> {
        self.sensors.as_mut()?.joules()
    }
}

impl MeasurementObserver<'_> {
    fn check_poison(&mut self) {
        if self.poison.is_none()
            && let Some(panic) = panics::device_panic()
        {
            self.poison = Some(poisoned_by(&self.cases[self.last], &panic));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::{Case, Verdict};

    #[test]
    fn speedup_is_interleaved_if_one_case_is_launch_bound() {
        let interleaved = timing::Comparison::paired(&[100.0; 20], &[103.0; 20], 0.02).unwrap();
        for (own, baseline, precision, is_replaced) in [
            (Some(false), Some(false), 0.01, false),
            (Some(true), Some(true), 0.01, false),
            (Some(true), None, 0.01, false),
            (Some(true), Some(false), 0.01, true),
            (Some(false), Some(true), -1.0, true),
        ] {
            let mut record = Record::new(Case::default(), Status::Ok);
            record.time.launch_bound = own;
            record.time.converged = Some(true);
            record.speedup = Some(Speedup {
                vs: "a/baseline".into(),
                ratio: 1.2,
                lo: Some(1.19),
                hi: Some(1.21),
                in_turns: Some(Box::new(Estimate {
                    median: interleaved.ratio,
                    lo: interleaved.lo,
                    hi: interleaved.hi,
                })),
                verdict: Verdict::Faster,
                margin: Some(0.02),
                rounds_needed: None,
            });
            prefer_interleaved_speedup(&mut record, &interleaved, baseline, precision);
            let speedup = record.speedup.unwrap();
            assert_eq!(speedup.in_turns.is_none(), is_replaced, "{own:?} {baseline:?}");
            assert_eq!(speedup.verdict, if is_replaced { Verdict::Slower } else { Verdict::Faster });
            assert_eq!(*record.warnings == [Warning::interleaved_speedup()], is_replaced);
            assert_eq!(record.time.converged, Some(precision > 0.0), "an imprecise speed-up has not converged");
        }
    }
}
