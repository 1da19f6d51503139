//! Cases timed together, and what is told of their times.

use super::bench::{Common, Context, Hear, Poisoned, guarded, poisoned};
use super::panics;
use super::protocol::{Assignment, Stage};
use super::ranges::Range;
use super::ready::Ready;
use super::sensors::{self, Sensors, Watch};
use crate::peaks::{self, Beside, Peaks, Probe};
use calorimeter_case::Regime;
use calorimeter_sinks::record::{Estimate, Scatter, Speedup, Telemetry, Window, finite};
use calorimeter_sinks::{Record, Status};
use calorimeter_timing::{Arm, Measurement, Observer, Options, Phase, Series, Silence, TimingError, measure};
use calorimeter_zoo::Device;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Measures what is ready, together, and fills its records.
pub fn time(
    ready: &mut [Ready],
    assignment: &Assignment,
    timing: &Options,
    common: &Common,
    context: &mut Context,
    hear: &mut dyn Hear,
) -> Result<(), Poisoned> {
    let cases: Vec<usize> = ready.iter().map(|one| one.case).collect();
    let mut kinds: Vec<&str> = ready.iter().flat_map(|one| one.kinds.clone()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut arms: Vec<Arm<'_>> = Vec::with_capacity(ready.len());
    for one in ready.iter_mut() {
        let arm = Arm::new(&mut one.job, one.stopwatch.as_mut());
        let baseline = assignment.against[one.case].and_then(|against| cases.iter().position(|&case| case == against));
        arms.push(match baseline {
            Some(baseline) => arm.against(baseline),
            None => arm,
        });
    }
    let Some(&first) = cases.first() else { return Ok(()) };
    hear.touch(first, Stage::Peaks);
    if context.sensors.is_none() {
        context.sensors = Some(Sensors::of(common.device, &assignment.device));
    }
    let (mut known, kept) = (context.peaks.take(), context.kept_peaks.clone());
    let find = |probe: &mut Probe<'_>| peaks::of(&kinds, &mut known, kept.as_deref(), probe);
    let peaks = guarded(first, || with_probe(assignment, common, context, find))?;
    context.peaks = known;
    let sensors = context.sensors.as_mut().map(Sensors::begin);
    let range = Range::new(assignment.cases.iter().map(|case| case.id.clone()).collect());
    let mut watcher = Watcher { cases: &cases, silence: context.silence, sensors, range, hear, last: 0, poison: None };
    let outcome = catch_unwind(AssertUnwindSafe(|| measure(&mut arms, timing, &mut watcher)));
    let (last, poison) = (watcher.last, watcher.poison.take());
    let telemetry = watcher.sensors.take().and_then(Watch::end);
    drop(arms);
    if let Some(poison) = poison {
        return Err(poison);
    }
    let case = cases.get(last).copied().unwrap_or_default();
    let outcome = guarded(case, || outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))?;
    let clocks: Vec<Option<String>> = ready.iter().map(|one| one.record.stopwatch.clone()).collect();
    for (one, outcome) in ready.iter_mut().zip(outcome) {
        let against = assignment.against[one.case];
        let vs = against.map(|against| assignment.cases[against].id.clone());
        fill(&mut one.record, outcome, vs, timing.margin, telemetry.as_ref());
        one.record.warnings.extend(one.stopwatch.remark());
        let counted = if common.device == Device::Cpu { sensors::count(&mut one.job, COUNTED) } else { None };
        if let (Some(counted), Some(telemetry)) = (counted, &mut one.record.telemetry) {
            let each = |count: u64| Some(count as f64 / f64::from(COUNTED));
            (telemetry.cycles, telemetry.instructions) = (each(counted.cycles), each(counted.instructions));
            telemetry.cache_misses = counted.cache_misses.and_then(each);
        }
        let other = against.and_then(|against| cases.iter().position(|&case| case == against)).map(|at| &clocks[at]);
        if let (Some(_), Some(Some(theirs)), Some(ours)) = (&one.record.speedup, other, &one.record.stopwatch)
            && theirs != ours
        {
            let warning = format!("the speed-up compares two clocks: {ours} here, {theirs} for the baseline");
            one.record.warnings.push(warning);
        }
    }
    hold_against_peaks(ready, peaks, assignment, common, context)
}

/// Launches over which the processor's counters are read, outside any window.
const COUNTED: u32 = 3;

/// Holds measured cases against the peaks of their device. One that goes over them is given a second look; one that is
/// over them then too is no result.
fn hold_against_peaks(
    ready: &mut [Ready],
    peaks: Option<Peaks>,
    assignment: &Assignment,
    common: &Common,
    context: &mut Context,
) -> Result<(), Poisoned> {
    let Some(mut peaks) = peaks else { return Ok(()) };
    // What travels between devices has a link's roof, which nobody measured.
    if common.task.is_link() {
        return Ok(());
    }
    for one in ready.iter_mut().filter(|one| one.record.status == Status::Ok) {
        let Ready { case, job, stopwatch, record, kinds, share } = one;
        let cache = assignment.device.cache_bytes;
        let place = |record: &Record, peaks: &Peaks| peaks::place(record, peaks, kinds, *share, cache);
        let mut roof = place(record, &peaks);
        let over = roof.as_ref().map(|roof| peaks::doubtful(record, roof, kinds, cache)).unwrap_or_default();
        if !over.is_empty() {
            let count = |count: Option<u64>| count.unwrap_or(0) as f64;
            let (operations, bytes) = (count(record.case.flops), count(record.case.bytes));
            let mut beside = Beside { work: job, stopwatch: stopwatch.as_mut(), operations, share: *share, bytes };
            let kept = context.kept_peaks.clone();
            let look =
                |probe: &mut Probe<'_>| peaks::again(record, &over, &mut peaks, kept.as_deref(), probe, &mut beside);
            let looked = guarded(*case, || with_probe(assignment, common, context, look))?;
            context.peaks = Some(peaks.clone());
            if let Err(why) = looked {
                record.status = Status::Failed;
                record.reason = Some(format!("implausible: {why}"));
            }
            roof = place(record, &peaks);
        }
        record.warnings.extend(peaks.missing(kinds));
        if kinds.is_empty() && record.case.flops.is_some_and(|flops| flops > 0) {
            record
                .warnings
                .push("there is no probe for products of such numbers: it has no share of a compute peak".into());
        }
        record.roofline = roof;
    }
    let refused: Vec<String> =
        ready.iter().filter(|one| one.record.status != Status::Ok).map(|one| one.record.case.id.clone()).collect();
    for one in ready.iter_mut() {
        // What was compared with a time that cannot be was not compared.
        if one.record.speedup.as_ref().is_some_and(|speedup| refused.contains(&speedup.vs)) {
            one.record.speedup = None;
            one.record.warnings.push("it has no speed-up: the time of its baseline was refused".into());
        }
    }
    Ok(())
}

/// Something done with a probe of this process.
fn with_probe<T>(
    assignment: &Assignment,
    common: &Common,
    context: &mut Context,
    body: impl FnOnce(&mut Probe<'_>) -> T,
) -> T {
    let policy = context.sensors.as_ref().map(Sensors::policy).unwrap_or_default();
    let may_tune = !context.silence.forbids_tuning();
    let machines = &mut context.machines;
    body(&mut Probe { told: &assignment.device, policy, device: common.device, may_tune, machines })
}

fn fill(
    record: &mut Record,
    outcome: Result<Measurement, TimingError>,
    against: Option<String>,
    margin: f64,
    telemetry: Option<&Telemetry>,
) {
    let measured = match outcome {
        Ok(measured) => measured,
        Err(error) => {
            record.status = Status::Failed;
            record.reason = Some(error.to_string());
            return;
        }
    };
    let median = measured.time.median;
    record.time_ns = Some(Estimate { median, lo: measured.time.lo, hi: measured.time.hi });
    record.windows = measured.windows.iter().map(|w| Window { launches: w.launches, nanos: w.nanos }).collect();
    record.converged = Some(measured.converged);
    // While a launch is enqueued nothing of it is computed.
    if record.case.regime != Regime::HostEnqueue.to_string() {
        record.tflops = record.case.flops.and_then(|flops| finite(flops as f64 / median / 1e3));
        record.gbps = record.case.bytes.and_then(|bytes| finite(bytes as f64 / median));
    }
    if measured.comparison.as_ref().is_some_and(|comparison| !comparison.sound) {
        record
            .warnings
            .push("the speed-up wanders more slowly than could be measured: its interval may be too narrow".into());
    }
    record.speedup = measured.comparison.zip(against).map(|(comparison, vs)| Speedup {
        vs,
        ratio: comparison.ratio,
        lo: comparison.lo,
        hi: comparison.hi,
        verdict: comparison.verdict.to_string(),
        margin: Some(margin),
        rounds_needed: comparison.rounds_needed,
    });
    let Series { min, p05, p95, mad, outliers, autocorrelation, .. } = measured.scatter;
    record.scatter = Some(Scatter { min, p05, p95, mad, outliers: outliers as u32, autocorrelation });
    record.warnings.extend(measured.scatter.warnings());
    record.launch_bound = record.enqueue_ns.map(|enqueue| launch_bound(record.stopwatch.as_deref(), median, enqueue));
    record.telemetry = telemetry.map(|telemetry| Telemetry {
        joules: measured.joules.and_then(finite),
        repeated_rounds: measured.repeated,
        ..telemetry.clone()
    });
    if !measured.time.sound {
        record
            .warnings
            .push("the times wander more slowly than could be measured: their interval may be too narrow".into());
    }
    if !measured.settled {
        record.warnings.push("the times still moved when the warm-up had to end".into());
    }
    if measured.spoilt > 0 {
        let warning = format!("throttled: in {} rounds the device was held back by heat or power", measured.spoilt);
        record.warnings.push(warning);
    }
    if measured.discarded > 0 {
        let warning =
            format!("{} windows were thrown away: kernels were compiled or tuned inside them", measured.discarded);
        record.warnings.push(warning);
    }
}

/// Whether the host, not the device, sets the pace of launches that follow one another. A wall-clock slope is the longer
/// of the two times and cannot be shorter than enqueuing takes.
fn launch_bound(stopwatch: Option<&str>, nanos: f64, enqueue: f64) -> bool {
    if stopwatch == Some("slope") { enqueue >= 0.8 * nanos } else { nanos < 1.2 * enqueue }
}

/// Passes on what the measurement does, and notices a poisoned process between two windows.
struct Watcher<'a> {
    cases: &'a [usize],
    silence: &'static Silence,
    sensors: Option<Watch<'a>>,
    range: Range,
    hear: &'a mut dyn Hear,
    last: usize,
    poison: Option<Poisoned>,
}

impl Observer for Watcher<'_> {
    fn touch(&mut self, arm: usize, phase: Phase) {
        self.notice();
        self.last = arm;
        self.range.enter(self.cases[arm]);
        let stage = match phase {
            Phase::Calibrate | Phase::WarmUp => Stage::WarmUp,
            Phase::Measure => Stage::Measure,
        };
        self.hear.touch(self.cases[arm], stage);
    }

    fn interrupted(&mut self) -> bool {
        self.notice();
        self.poison.is_some() || self.hear.interrupted()
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

    fn joules(&mut self) -> Option<f64> {
        self.sensors.as_mut()?.joules()
    }
}

impl Watcher<'_> {
    fn notice(&mut self) {
        if self.poison.is_none()
            && let Some(panic) = panics::on_device()
        {
            self.poison = Some(poisoned(self.cases[self.last], &panic));
        }
    }
}
