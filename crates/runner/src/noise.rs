//! A/A tests: differences between identical computations on this machine, and the margin derived from them.

use crate::entries::{DeviceSelection, Entry, Origin, Overrides, Size};
use crate::mock::MockRule;
use crate::plan::{Group, PlannedCase, Prediction};
use crate::rough_time::{PLAN_ASSUMPTION, announce_duration};
use crate::run::{Request, RunError};
use crate::worker::{
    AssignedCase, Assignment, AssignmentPurpose, CaseSpec, Executor, Subprocess, WorkerEvent, WorkerListener,
};
use calorimeter_case::Axes;
use calorimeter_case::record::Speedup;
use calorimeter_probe::clock_lock::ClockLocks;
use calorimeter_probe::devices::{self, DiscoveredDevice};
use calorimeter_probe::noise_floor::{DeviceNoise, NOISE_VERSION, NoiseRates, WorkloadNoise, clock_policy, noise_path};
use calorimeter_probe::{host, platforms};
use calorimeter_recipes::{Dtype, Element, Recipe};
use calorimeter_shapes::Shape;
use calorimeter_sinks::{Case, Record, Status, cache};
use calorimeter_timing::telemetry::LockedClock;
use calorimeter_timing::{Options, Verdict, median};
use calorimeter_zoo::Implementation;
use std::fmt::Display;
use std::time::Duration;

/// Error of a noise measurement.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoiseError {
    /// Planning or starting workers failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A computation failed.
    #[error("{0}")]
    Failed(String),
    /// The user interrupted the measurement.
    #[error("interrupted")]
    Interrupted,
}

/// Parameters of a noise measurement.
pub(crate) struct NoiseRequest {
    /// Device to measure.
    pub device: DeviceSelection,
    /// Number of comparisons.
    pub count: u32,
    /// Filter on workload ids. With a filter, the result is not saved.
    pub filter: Option<String>,
    /// Clock to lock during the measurement.
    pub lock_clocks: Option<LockedClock>,
}

/// Smallest margin; smaller differences are never distinguished.
const MIN_MARGIN: f64 = 0.02;
const TIMEOUT: Duration = Duration::from_secs(300);

/// Comparisons of one workload so far.
struct WorkloadComparisons {
    case: Case,
    stopwatch: String,
    speedups: Vec<Speedup>,
}

/// Compares several workloads with themselves, interleaved; calls `show` after each comparison.
///
/// Each worker process compares every workload once. Memory layout and tuned kernels are fixed for the life of a
/// process. Comparisons within one process would share them; one process per comparison would mostly measure process
/// startup.
pub(crate) fn measure(
    wanted: &NoiseRequest,
    workers: &mut Subprocess,
    interrupted: &dyn Fn() -> bool,
    show: &mut dyn FnMut(&str, &Speedup),
) -> Result<DeviceNoise, NoiseError> {
    let found = wanted.device.find().map_err(RunError::from)?;
    let _locks = match wanted.lock_clocks {
        Some(clock) => ClockLocks::acquire([&found], clock).map_err(RunError::from)?,
        None => ClockLocks::default(),
    };
    let filter = wanted.filter.clone();
    let overrides = Overrides { filter, ..Overrides::default() };
    let prepared = Request { entries: entries(&found)?, overrides, ..Request::default() }.prepare()?;
    let mut workloads: Vec<WorkloadComparisons> =
        prepared.plan().cases().map(WorkloadComparisons::new).collect::<Result<_, _>>()?;
    let planned = prepared.plan().groups().iter().flat_map(Group::cases);
    let specs: Option<Vec<CaseSpec>> = planned.map(PlannedCase::spec).collect();
    let specs = specs.expect("the workloads above are supported");
    let each = workloads.len() as u32;
    let predicted = predict(&workloads, wanted.count);
    announce_duration(predicted.min_total(), predicted.max_total(), PLAN_ASSUMPTION);
    for index in 0..wanted.count {
        if index % each == 0 {
            workers.restart_worker();
        }
        let at = (index % each) as usize;
        let workload = &mut workloads[at];
        workload.compare(&specs[at], index, &found, workers, interrupted)?;
        if let Some(speedup) = workload.speedups.last() {
            show(&workload.case.id, speedup);
        }
    }
    let noise = summary(&workloads, &found, wanted.count.div_ceil(each));
    if let (None, Some(path)) = (&wanted.filter, noise_path(&noise.identity)) {
        cache::write(&path, &noise);
    }
    Ok(noise)
}

impl WorkloadComparisons {
    /// Creates a workload without comparisons; fails if the plan reports it as unsupported.
    fn new((case, supported): (Case, Result<(), &str>)) -> Result<Self, NoiseError> {
        supported.map_err(|why| NoiseError::Failed(format!("{}: {why}", case.id)))?;
        Ok(Self { case, stopwatch: String::new(), speedups: Vec::new() })
    }

    /// Compares the workload with a copy of itself.
    fn compare(
        &mut self,
        spec: &CaseSpec,
        index: u32,
        found: &DiscoveredDevice,
        workers: &mut Subprocess,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<(), NoiseError> {
        let mut comparison = ComparisonListener { records: Vec::new(), interrupted };
        let ran = workers.run(&aa_assignment(&self.case, spec, index, found), found, TIMEOUT, &mut comparison);
        ran.map_err(RunError::from)?;
        if interrupted() {
            return Err(NoiseError::Interrupted);
        }
        let records = comparison.records;
        let wrong = records.iter().find(|record| record.outcome.status != Status::Ok);
        let speedup = records.iter().find_map(|record| record.speedup.clone());
        let Some(speedup) = speedup.filter(|_| wrong.is_none()) else {
            let reason = wrong.and_then(|record| record.outcome.reason.clone());
            let reason = reason.unwrap_or_else(|| "the two arms were not compared".into());
            return Err(NoiseError::Failed(format!("{}: {reason}", self.case.id)));
        };
        self.speedups.push(speedup);
        if let Some(stopwatch) = records.into_iter().find_map(|record| record.execution.stopwatch) {
            self.stopwatch = stopwatch;
        }
        Ok(())
    }
}

fn summary(workloads: &[WorkloadComparisons], found: &DiscoveredDevice, processes: u32) -> DeviceNoise {
    let all: Vec<&Speedup> = workloads.iter().flat_map(|workload| &workload.speedups).collect();
    let total = rates(&all);
    let compared = workloads.iter().filter(|workload| !workload.speedups.is_empty());
    let workload = |one: &WorkloadComparisons| WorkloadNoise {
        case: one.case.id.to_string(),
        stopwatch: one.stopwatch.clone(),
        rates: rates(&one.speedups.iter().collect::<Vec<_>>()),
    };
    let workloads: Vec<WorkloadNoise> = compared.map(workload).collect();
    let floors: Vec<f64> = workloads.iter().map(|one| one.rates.floor).collect();
    let middle_floor = median(&floors).unwrap_or(0.0);
    DeviceNoise {
        version: NOISE_VERSION,
        device: found.device.to_string(),
        identity: found.identity.clone(),
        driver: found.driver.clone(),
        policy: clock_policy(found),
        measured: host::now().to_rfc3339(),
        processes,
        workloads,
        total,
        middle_floor,
        margin: MIN_MARGIN.max(2.0 * middle_floor),
    }
}

/// Computes rates of A/A comparisons.
fn rates(speedups: &[&Speedup]) -> NoiseRates {
    let share = |wanted: &dyn Fn(&Speedup) -> bool| {
        speedups.iter().filter(|speedup| wanted(speedup)).count() as f64 / speedups.len().max(1) as f64
    };
    let mut off: Vec<f64> = speedups.iter().map(|speedup| speedup.ratio.ln().abs().exp() - 1.0).collect();
    off.sort_unstable_by(f64::total_cmp);
    let is = |verdict: Verdict| move |speedup: &Speedup| speedup.verdict == verdict;
    NoiseRates {
        comparisons: speedups.len() as u32,
        false_verdict_rate: share(&is(Verdict::Faster)) + share(&is(Verdict::Slower)),
        interval_miss_rate: share(&|speedup| {
            speedup.lo.is_some_and(|lo| lo > 1.0) || speedup.hi.is_some_and(|hi| hi < 1.0)
        }),
        same_rate: share(&is(Verdict::Same)),
        floor: off.get((off.len() * 95).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0.0),
    }
}

/// Workloads of the A/A tests: matmuls (compute-bound), array additions (memory-bound; the shortest is dominated by
/// launch overhead), and a training step, which has both.
fn entries(found: &DiscoveredDevice) -> Result<Vec<Entry>, NoiseError> {
    let trials = platforms::for_device(found.device).defaults(found.software);
    let products = trials.noise_matmul_sizes.iter().map(|&size| Shape::new(size, size, size).map(Into::into));
    let products = products.collect::<Result<Vec<Axes>, _>>().map_err(failed)?;
    let sums = trials.noise_add_lengths.iter().map(|&elements| Axes::new([("elements", elements)]));
    let sums = sums.collect::<Result<Vec<Axes>, _>>().map_err(failed)?;
    let step = products[..1].to_vec();
    [("linear", products), ("stream_add", sums), ("linear_adamw_step", step)]
        .into_iter()
        .map(|(subject, sizes)| entry(subject, sizes, found))
        .collect()
}

fn entry(subject: &str, sizes: Vec<Axes>, found: &DiscoveredDevice) -> Result<Entry, NoiseError> {
    let sizes = sizes.into_iter().map(Size::custom).collect();
    Ok(Entry {
        element: Element::Float(Dtype::F32),
        recipes: vec![Recipe::BASELINE],
        device: Some(DeviceSelection::Single(found.device)),
        implementations: Some(vec![Implementation::Eager]),
        ..Entry::new(Origin::command("noise"), subject.parse().map_err(failed)?, sizes)
    })
}

fn failed(error: impl Display) -> NoiseError {
    NoiseError::Failed(error.to_string())
}

/// Timing of a comparison. The noise floor of earlier runs and a long warm-up are irrelevant: only the difference of two
/// arms in one process counts.
fn aa_timing(index: u32) -> Options {
    Options {
        margin: MIN_MARGIN,
        warm_up: Duration::from_millis(50),
        min_time: Duration::from_millis(100),
        max_time: Duration::from_secs(1),
        max_warm_up: Duration::from_millis(500),
        seed: u64::from(index),
        energy: false,
        ..Options::default()
    }
}

/// Predicted duration of `count` comparisons, which have two arms each.
fn predict(workloads: &[WorkloadComparisons], count: u32) -> Prediction {
    let cases = workloads.iter().cycle().take(count as usize).enumerate();
    cases.map(|(index, workload)| Prediction::for_case(&workload.case, &aa_timing(index as u32)) * 2.0).sum()
}

/// Assignment of a case and its copy, compared with each other.
fn aa_assignment(case: &Case, spec: &CaseSpec, index: u32, found: &DiscoveredDevice) -> Assignment {
    let named = |name: char| Case { id: format!("{}#{name}{index}", case.id).into(), ..case.clone() };
    let sets = devices::buffer_set_count(found, case.regime, case.bytes.unwrap_or(0));
    let spec = CaseSpec { task: spec.task.clone().with_seed(u64::from(index)), ..spec.clone() };
    let first = AssignedCase { case: named('a'), spec, baseline: None, sets, kernels: None };
    let second = AssignedCase { case: named('b'), baseline: Some(first.case.id.clone()), ..first.clone() };
    let cases = vec![first, second];
    // On the mock device: 1 % noise.
    let mock = vec![MockRule { noise: 0.01, ..MockRule::default() }];
    Assignment {
        cases,
        device: found.facts(),
        run_dir: None,
        purpose: AssignmentPurpose::Measure(aa_timing(index)),
        mock,
        concurrent_devices: false,
        next: Vec::new(),
    }
}

/// Listener that collects the records of one comparison.
struct ComparisonListener<'a> {
    records: Vec<Record>,
    interrupted: &'a dyn Fn() -> bool,
}

impl WorkerListener for ComparisonListener<'_> {
    fn on_event(&mut self, event: WorkerEvent) {
        if let WorkerEvent::CaseFinished(record) = event {
            self.records.push(*record);
        }
    }

    fn interrupted(&self) -> bool {
        (self.interrupted)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::Device;

    fn speedup(ratio: f64, verdict: Verdict) -> Speedup {
        let (lo, hi) = (Some(ratio - 0.005), Some(ratio + 0.005));
        Speedup { ratio, lo, hi, verdict, ..Speedup::default() }
    }

    #[test]
    fn predicted_duration_grows_with_the_comparisons() {
        let workload = || WorkloadComparisons {
            case: Case { device: Device::Cpu, ..Case::default() },
            stopwatch: String::new(),
            speedups: Vec::new(),
        };
        let predicted = |count| predict(&[workload(), workload()], count);
        let seconds = aa_timing(0);
        let per_arm = (seconds.max_time + seconds.max_warm_up).as_secs_f64();
        assert!((predicted(40).max_measurement - 80.0 * per_arm).abs() < 1e-9, "{:?}", predicted(40));
        assert!(predicted(40).min_total() > 7.9 * predicted(5).min_total());
    }

    #[test]
    fn rates_and_floor_follow_from_comparisons() {
        let mut speedups = vec![speedup(1.001, Verdict::Same); 16];
        speedups.extend([
            speedup(1.03, Verdict::Faster),
            speedup(1.0 / 1.02, Verdict::Unclear),
            speedup(0.9, Verdict::Slower),
            speedup(1.0, Verdict::Same),
        ]);
        let rates = rates(&speedups.iter().collect::<Vec<_>>());
        assert_eq!((rates.comparisons, rates.false_verdict_rate, rates.same_rate), (20, 0.1, 0.85));
        assert_eq!(rates.interval_miss_rate, 0.15);
        assert!((rates.floor - 0.03).abs() < 1e-12, "{rates:?}");
    }

    #[test]
    fn workloads_have_own_rates_and_one_margin() {
        let compared = |off: f64, verdict: Verdict| {
            let speedups = vec![speedup(1.0 + off, verdict); 10];
            WorkloadComparisons { case: Case::default(), stopwatch: "wall".into(), speedups }
        };
        let nothing = || WorkloadComparisons { case: Case::default(), stopwatch: "wall".into(), speedups: Vec::new() };
        let device = DiscoveredDevice::with_name(Device::Mock(0), "mock");
        // One of three workloads cannot be timed.
        let of = |middle| {
            summary(
                &[
                    compared(0.001, Verdict::Same),
                    compared(9.0, Verdict::Faster),
                    compared(middle, Verdict::Same),
                    nothing(),
                ],
                &device,
                10,
            )
        };
        let noise = of(0.05);
        let each: Vec<_> = noise.workloads.iter().map(|one| one.rates.false_verdict_rate).collect();
        assert_eq!(each, [0.0, 1.0, 0.0]);
        assert!((noise.total.floor - 9.0).abs() < 1e-12 && (noise.margin - 0.1).abs() < 1e-12, "{noise:?}");
        assert_eq!(of(0.001).margin, MIN_MARGIN);
        let read: DeviceNoise = serde_json::from_value(serde_json::to_value(&noise).unwrap()).unwrap();
        assert_eq!(read, noise);
    }
}
