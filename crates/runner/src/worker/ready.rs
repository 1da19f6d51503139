//! A case made ready to be timed: opened, checked against its reference, primed, its stopwatch chosen.

use super::bench::{Common, Context, Hear, ended, variant};
use super::protocol::{Assignment, Seen, Stage};
use super::tuning::Decisions;
use crate::clocks::stopwatch;
use crate::mock::{MockWorkload, Rule};
use crate::peaks;
use calorimeter_case::Regime;
use calorimeter_case::record::{Accuracy, Rotation, Tuning, finite};
use calorimeter_recipes::{Sparsity, Treatment};
use calorimeter_sinks::{Record, Status};
use calorimeter_timing::{Enqueue, Failure, MockClock, Stopwatch, Work};
use calorimeter_zoo::{Device, Implementation, Setup, Workload, ZooError, gate};
use std::time::Instant;

/// A case that is ready to be timed.
pub struct Ready {
    pub case: usize,
    pub job: Job,
    pub stopwatch: Box<dyn Stopwatch>,
    pub record: Record,
    /// The kinds of number that its products may be computed in.
    pub kinds: Vec<&'static str>,
    /// The share of the operations that is done: blocks of zeros are left out.
    pub share: f64,
}

/// A workload as the timing crate takes it.
pub struct Job(pub Box<dyn Workload>);

impl Work for Job {
    fn launch(&mut self) -> Result<(), Failure> {
        Ok(self.0.launch()?)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(self.0.settle()?)
    }
}

/// Opens, gates and primes a case. What cannot be timed, or is not to be, is answered with its record.
pub fn make_ready(
    case: usize,
    sets: u32,
    assignment: &Assignment,
    common: &mut Common,
    context: &mut Context,
    hear: &mut dyn Hear,
) -> Result<Ready, Box<Record>> {
    let (identity, timed) = (&assignment.cases[case], assignment.timing.is_some());
    let end = |status, reason: String| Box::new(ended(identity, status, reason));
    let refuse = |error: ZooError| match error {
        ZooError::Unsupported(why) => end(Status::Unsupported, why),
        other => end(Status::Failed, other.to_string()),
    };
    let variant = variant(identity).map_err(|error| end(Status::Failed, error.to_string()))?;
    let (implementation, regime) = (identity.implementation, identity.regime);
    let treatment = common.task.support(variant, implementation, common.device).map_err(refuse)?;
    hear.touch(case, Stage::Open);
    let mut record = Record::new(identity.clone(), Status::Ok);
    if common.device == Device::Mock {
        let ready = mock(case, assignment, &common.mock, record, hear).map_err(refuse)?;
        return if timed && ready.record.outcome.status == Status::Ok {
            Ok(ready)
        } else {
            Err(Box::new(ready.record))
        };
    }

    let (task, device) = (common.task.clone(), common.device);
    let setup = Setup { implementation, device, sets: if timed { sets } else { 1 } };
    let mut workload = task.open(common.inputs(), &treatment, setup, &mut context.machines).map_err(refuse)?;
    hear.touch(case, Stage::Tune);
    let folder = context.tuning.clone();
    let decisions = folder.as_deref().map(Decisions::before);
    let (start, tuned) = (Instant::now(), context.silence.tuned());
    let outputs = workload.outputs().map_err(refuse)?;
    if timed {
        // Every buffer set once: what a lazy backend plans for one it may not have planned for another.
        let lazy = implementation == Implementation::Fused && device != Device::Cpu;
        for _ in 0..if lazy { PRIMING.max(sets) } else { PRIMING } {
            workload.launch().map_err(refuse)?;
        }
        workload.settle().map_err(refuse)?;
        let nanos = start.elapsed().as_nanos() as u64;
        let events = context.silence.tuned() - tuned;
        record.preparation.prime_ns = Some(nanos);
        record.preparation.tuning = (events > 0).then_some(Tuning { nanos, events });
    }

    let tf32 = workload.may_use_tf32();
    let judged = task.judge(&treatment, &outputs, common.references(&treatment).map_err(refuse)?, tf32);
    if judged.as_ref().is_ok_and(|judged| judged.tf32) {
        record.outcome.warnings.push(TF32.into());
    }
    let plain = Treatment::none(task.dtype());
    if let (Some(unquantised), Some(output)) = (common.references(&plain).map_err(refuse)?.first(), outputs.first()) {
        let scheme = gate::accuracy(&output.sampled(&unquantised.sample), &unquantised.values);
        record.accuracy = Some(Accuracy {
            sqnr_db: finite(scheme.sqnr_db),
            rel_l2: finite(scheme.rel_l2),
            max_abs: finite(scheme.max_abs),
            cosine: finite(scheme.cosine),
            kernel_rel_l2: judged.as_ref().ok().map(|judged| judged.rel_l2),
        });
    }
    record.weights.baseline_weight_bytes = task.weight_bytes(&plain);
    record.weights.weight_bytes = record.weights.baseline_weight_bytes.map(|_| workload.weight_bytes());
    record.weights.quantise_ns = workload.quantising().map(|time| time.as_nanos() as u64);
    if let Err(mismatch) = judged {
        record.outcome.status = Status::Mismatch;
        record.outcome.reason = Some(format!("wrong output: {mismatch}"));
    }
    if !timed || record.outcome.status != Status::Ok {
        return Err(Box::new(record));
    }

    if treatment.sparsity == Some(Sparsity::SemiStructured) {
        record.outcome.warnings.push(TWO_OF_FOUR.into());
    }
    let known = decisions.map(|decisions| decisions.after(identity, &task.products(), implementation));
    record.execution.autotune = known.unwrap_or_default();
    let kinds = peaks::kinds(device, task.factors(implementation), treatment == plain, tf32);
    let share = match treatment.sparsity {
        Some(Sparsity::Block { percent, .. }) => 1.0 - f64::from(percent) / 100.0,
        _ => 1.0,
    };
    let algorithm = workload.kernel();
    let mut job = Job(workload);
    let broken = |error: Failure| end(Status::Failed, error.to_string());
    let clock = stopwatch(regime, setup, &mut context.machines, &mut job);
    let (mut stopwatch, remark) = clock.map_err(broken)?;
    record.outcome.warnings.extend(remark);
    record.execution.stopwatch = Some(stopwatch.name().to_owned());
    // It is the clock's, not the case's.
    let known = context.granularities.get(&(stopwatch.name(), implementation)).copied();
    let step = match known {
        Some(known) if known.step_ns <= FINE_NS => known,
        // Few and long launches show a step that is too large: the next case looks again.
        _ => {
            let new = stopwatch.granularity(&mut job).map_err(broken)?;
            known.filter(|known| known.step_ns < new.step_ns).unwrap_or(new)
        }
    };
    context.granularities.insert((stopwatch.name(), implementation), step);
    record.preparation.granularity_ns = Some(step.step_ns);
    record.preparation.empty_window_ns = Some(step.empty_ns);
    let kernels = stopwatch.ran(&mut job, sets).map_err(broken)?;
    let (kernels, passes) = match (kernels, assignment.seen.get(case).cloned().flatten()) {
        (None, Some(Seen { passes, kernels })) => (Some(counted(kernels)), passes),
        (kernels, _) => (kernels, sets),
    };
    record.execution.kernel_launches = kernels.as_ref().map(|kernels| calls(kernels) as f64 / f64::from(passes));
    record.execution.kernel = kernels.map(|kernels| names(kernels, passes)).or(algorithm);
    if regime.rotates() {
        let rotation =
            Rotation { sets, bytes: identity.bytes.unwrap_or(0), cache_bytes: Some(assignment.device.cache_bytes) };
        record.outcome.warnings.extend(cached(&rotation));
        record.execution.rotation = Some(rotation);
    }
    if device != Device::Cpu && matches!(regime, Regime::DeviceCold | Regime::DeviceHot) {
        record.time.enqueue_ns = Some(enqueue(&mut job).map_err(broken)?);
    }
    Ok(Ready { case, job, stopwatch, record, kinds, share })
}

/// Which kernels a pass consists of.
fn names(kernels: Vec<(String, u64)>, passes: u32) -> String {
    let names = kernels.into_iter().map(|(name, calls)| match calls / u64::from(passes) {
        0 | 1 => name,
        calls => format!("{calls} x {name}"),
    });
    names.collect::<Vec<_>>().join(" + ")
}

/// Kernels with the number of their calls, in the order of their first.
fn counted(kernels: Vec<(String, u64)>) -> Vec<(String, u64)> {
    let mut counted: Vec<(String, u64)> = Vec::new();
    for (name, _) in kernels {
        match counted.iter_mut().find(|(known, _)| *known == name) {
            Some((_, calls)) => *calls += 1,
            None => counted.push((name, 1)),
        }
    }
    counted
}

fn calls(kernels: &[(String, u64)]) -> u64 {
    kernels.iter().map(|(_, calls)| calls).sum()
}

/// What to say of buffer sets that a cache may hold.
fn cached(rotation: &Rotation) -> Option<String> {
    let (held, cache) = (u64::from(rotation.sets) * rotation.bytes, rotation.cache_bytes?);
    (held < cache).then(|| {
        format!(
            "the buffer sets together are smaller than the cache ({:.0} MiB): operands may come from it",
            cache as f64 / f64::from(1 << 20)
        )
    })
}

/// Nanoseconds in which the host enqueues a launch: the least of a few short windows.
fn enqueue(job: &mut Job) -> Result<f64, Failure> {
    const WINDOWS: u32 = 5;
    const LAUNCHES: u32 = 8;
    let mut least = f64::INFINITY;
    for _ in 0..WINDOWS {
        let nanos = Enqueue.window(job, LAUNCHES)?.resolve()?;
        least = least.min(nanos as f64 / f64::from(LAUNCHES));
    }
    Ok(least)
}

/// Said where f32 was asked for and tensor cores computed something coarser.
pub(crate) const TF32: &str =
    "f32 operands were rounded to TF32 (10-bit mantissas) for tensor cores: not comparable with full f32";
/// Said where half of a weight is zero and all of it is multiplied; block sparsity leaves its zero blocks out.
const TWO_OF_FOUR: &str = "semi-sparse: the pruned weight is stored compressed and multiplied dense, \
     because no kernel here uses sparse tensor cores; the time is not that of sparsity";
/// A step of a clock that need not be looked for again.
const FINE_NS: u64 = 1000;
/// Launches after the first, so that lazy backends have settled on how they run.
const PRIMING: u32 = 3;

fn mock(
    case: usize,
    assignment: &Assignment,
    time: &MockClock,
    mut record: Record,
    hear: &mut dyn Hear,
) -> Result<Ready, ZooError> {
    let id = &record.case.id;
    let rule = Rule::of(&assignment.mock, id)?;
    let stopwatch = time.beside(rule.script(id));
    let mut workload = MockWorkload::new(rule);
    hear.touch(case, Stage::Tune);
    let output = workload.output()?;
    record.execution.stopwatch = assignment.timing.as_ref().map(|_| stopwatch.name().to_owned());
    if output.values[0].is_nan() {
        record.outcome.status = Status::Mismatch;
        record.outcome.reason = Some("wrong output: the mock device was told to be wrong".into());
    }
    Ok(Ready { case, job: Job(Box::new(workload)), stopwatch: Box::new(stopwatch), record, kinds: vec![], share: 1.0 })
}
