//! One assignment from tensors to records: open, gate, prime, measure; without timing, open and gate.

use super::panics::{self, Panic};
use super::protocol::{Assignment, Stage};
use crate::clocks::stopwatch;
use crate::mock::{MockWorkload, Rule};
use calorimeter_recipes::{RecipeError, Sparsity, Treatment, Variant};
use calorimeter_shapes::Shape;
use calorimeter_sinks::record::{Accuracy, Estimate, Speedup, Tuning, Window, finite};
use calorimeter_sinks::{Case, Record, Status};
use calorimeter_timing::{
    Arm, Failure, Measurement, MockClock, Observer, Options, Phase, Script, Silence, Stopwatch, TimingError, Work,
    granularity, measure,
};
use calorimeter_zoo::{
    Device, Implementation, Machines, Problem, Reference, Tensors, Workload, ZooError, gate, open, support,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// What the cases of one process share.
pub struct Context {
    machines: Machines,
    silence: &'static Silence,
    /// Memory that was free before anything was allocated: pools keep what they took, and may use it again.
    free_memory: Option<u64>,
}

/// Hears what happens to cases.
pub trait Hear {
    fn touch(&mut self, case: usize, stage: Stage);
    fn record(&mut self, case: usize, record: Record);
    fn interrupted(&self) -> bool;
}

/// A case that left the process in a state that cannot be trusted.
#[derive(Debug)]
pub struct Poisoned {
    pub case: usize,
    pub reason: String,
}

impl Context {
    pub fn new() -> Self {
        panics::remember();
        Self { machines: Machines::default(), silence: Silence::listen(), free_memory: None }
    }

    fn free_memory(&mut self, device: Device) -> Option<u64> {
        if self.free_memory.is_none() {
            self.free_memory = self
                .machines
                .free_memory(device)
                .or_else(|| (device == Device::Cpu).then(crate::environment::available_memory).flatten());
        }
        self.free_memory
    }
}

/// A case that is ready to be timed.
struct Ready {
    case: usize,
    job: Job,
    stopwatch: Box<dyn Stopwatch>,
    record: Record,
}

/// A workload as the timing crate takes it.
struct Job(Box<dyn Workload>);

impl Work for Job {
    fn launch(&mut self) -> Result<(), Failure> {
        Ok(self.0.launch()?)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(self.0.settle()?)
    }
}

/// What the cases of an assignment compute, with the references that they share.
struct Common {
    problem: Problem,
    device: Device,
    tensors: Option<Tensors>,
    references: Vec<(Treatment, Reference)>,
    /// The time that passes on the mock device.
    mock: MockClock,
}

/// Works on an assignment; every case gets a record, unless one poisons the process or the run is interrupted.
pub fn work(assignment: &Assignment, context: &mut Context, hear: &mut dyn Hear) -> Result<(), Poisoned> {
    let Some(first) = assignment.cases.first() else { return Ok(()) };
    let mut common = match common(first, assignment.seed) {
        Ok(common) => common,
        Err(error) => {
            for (case, identity) in assignment.cases.iter().enumerate() {
                hear.record(case, ended(identity, Status::Failed, error.to_string()));
            }
            return Ok(());
        }
    };
    let mut recorded = vec![false; assignment.cases.len()];
    for batch in batches(assignment, &common, context, hear, &mut recorded) {
        let mut ready: Vec<Ready> = Vec::new();
        for case in batch {
            if hear.interrupted() {
                return Ok(());
            }
            let made = guarded(case, || make_ready(case, assignment, &mut common, context, hear))?;
            match made {
                Ok(made) => ready.push(made),
                Err(record) if !recorded[case] => {
                    hear.record(case, *record);
                    recorded[case] = true;
                }
                Err(_) => {}
            }
        }
        if let Some(timing) = &assignment.timing {
            time(&mut ready, assignment, timing, context, hear, &mut recorded)?;
        }
    }
    Ok(())
}

fn common(case: &Case, seed: u64) -> Result<Common, Box<dyn std::error::Error>> {
    let axis = |name: &str| case.shape.get(name).ok_or(format!("the case has no axis {name}"));
    let shape = Shape::new(axis("m")?, axis("k")?, axis("n")?)?;
    let problem = Problem { model: case.workload.parse()?, shape, dtype: case.dtype.parse()?, seed };
    Ok(Common {
        problem,
        device: case.device.parse()?,
        tensors: None,
        references: Vec::new(),
        mock: MockClock::new(Script::default()),
    })
}

fn variant(case: &Case) -> Result<Variant, RecipeError> {
    Ok(Variant { recipe: case.recipe.parse()?, sparsity: case.sparsity.as_deref().map(str::parse).transpose()? })
}

impl Common {
    fn tensors(&mut self) -> &Tensors {
        self.tensors.get_or_insert_with(|| self.problem.tensors())
    }

    fn reference(&mut self, treatment: &Treatment) -> Result<&Reference, ZooError> {
        let at = match self.references.iter().position(|(known, _)| known == treatment) {
            Some(at) => at,
            None => {
                let problem = self.problem;
                let reference = problem.reference(self.tensors(), treatment)?;
                self.references.push((*treatment, reference));
                self.references.len() - 1
            }
        };
        Ok(&self.references[at].1)
    }
}

/// Cases that fit into memory together: all of them, or each with the one it is compared with. A case that does not fit
/// at all is recorded at once. What is not timed is opened one after the other.
fn batches(
    assignment: &Assignment,
    common: &Common,
    context: &mut Context,
    hear: &mut dyn Hear,
    recorded: &mut [bool],
) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..assignment.cases.len()).collect();
    let Some(free) = (common.device != Device::Mock).then(|| context.free_memory(common.device)).flatten() else {
        return vec![all];
    };
    let budget = free / 100 * 95;
    let need = |case: usize| assignment.cases[case].memory_bytes.unwrap_or(0);
    let fits = |cases: &[usize]| cases.iter().map(|&case| need(case)).sum::<u64>() <= budget;
    let (fitting, too_large): (Vec<usize>, Vec<usize>) = all.into_iter().partition(|&case| fits(&[case]));
    for case in too_large {
        let (need, free) = (need(case) as f64 / 1e9, free as f64 / 1e9);
        let reason = format!("does not fit: it needs about {need:.1} GB, {free:.1} GB are free on {}", common.device);
        hear.record(case, ended(&assignment.cases[case], Status::Failed, reason));
        recorded[case] = true;
    }
    if fits(&fitting) || assignment.timing.is_none() {
        return vec![fitting];
    }
    fitting
        .iter()
        .map(|&case| {
            let baseline =
                assignment.against[case].filter(|&baseline| fitting.contains(&baseline) && fits(&[baseline, case]));
            baseline.into_iter().chain([case]).collect()
        })
        .collect()
}

/// Runs part of a case; a panic is a poisoned process, also one that a device thread kept to itself.
fn guarded<T>(case: usize, body: impl FnOnce() -> T) -> Result<T, Poisoned> {
    let outcome = catch_unwind(AssertUnwindSafe(body));
    if let Some(panic) = panics::on_device() {
        return Err(poisoned(case, &panic));
    }
    outcome.map_err(|_| match panics::take().pop() {
        Some(panic) => poisoned(case, &panic),
        None => Poisoned { case, reason: "panicked".into() },
    })
}

fn poisoned(case: usize, panic: &Panic) -> Poisoned {
    let Panic { thread, message } = panic;
    let reason = if panic.on_a_device_thread() {
        format!(
            "a panic on the device thread {thread}, after which nothing this process computes can be trusted: {message}"
        )
    } else {
        format!("panicked: {message}")
    };
    Poisoned { case, reason }
}

/// Opens, gates and primes a case. What cannot be timed, or is not to be, is answered with its record.
fn make_ready(
    case: usize,
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
    let implementation: Implementation = identity.implementation.parse().map_err(refuse)?;
    let treatment = support(&common.problem, variant, implementation, common.device).map_err(refuse)?;
    hear.touch(case, Stage::Open);
    let mut record = Record::new(identity.clone(), Status::Ok);
    if common.device == Device::Mock {
        let ready = mock(case, assignment, &common.mock, record, hear).map_err(refuse)?;
        return if timed { Ok(ready) } else { Err(Box::new(ready.record)) };
    }

    let (problem, device) = (common.problem, common.device);
    let mut workload =
        open(&problem, common.tensors(), &treatment, implementation, device, &mut context.machines).map_err(refuse)?;
    hear.touch(case, Stage::Tune);
    let (start, tuned) = (Instant::now(), context.silence.tuned());
    let output = workload.output().map_err(refuse)?;
    if timed {
        for _ in 0..PRIMING {
            workload.launch().map_err(refuse)?;
        }
        workload.settle().map_err(refuse)?;
        let nanos = start.elapsed().as_nanos() as u64;
        let events = context.silence.tuned() - tuned;
        record.prime_ns = Some(nanos);
        record.tuning = (events > 0).then_some(Tuning { nanos, events });
    }

    let judged =
        problem.judge(&treatment, &output, common.reference(&treatment).map_err(refuse)?, workload.may_use_tf32());
    if judged.as_ref().is_ok_and(|judged| judged.tf32) {
        record.warnings.push(TF32.into());
    }
    let plain = Treatment::none(problem.dtype);
    let unquantised = common.reference(&plain).map_err(refuse)?;
    let scheme = gate::accuracy(&output.sampled(&unquantised.sample), &unquantised.values);
    record.accuracy = Some(Accuracy {
        sqnr_db: finite(scheme.sqnr_db),
        rel_l2: finite(scheme.rel_l2),
        max_abs: finite(scheme.max_abs),
        cosine: finite(scheme.cosine),
        kernel_rel_l2: judged.as_ref().ok().map(|judged| judged.rel_l2),
    });
    record.weight_bytes = Some(workload.weight_bytes());
    record.baseline_weight_bytes = Some(problem.weight_bytes(&plain));
    record.quantise_ns = workload.quantising().map(|time| time.as_nanos() as u64);
    record.kernel = workload.kernel();
    if let Err(mismatch) = judged {
        record.status = Status::Mismatch;
        record.reason = Some(format!("wrong output: {mismatch}"));
    }
    if !timed || record.status != Status::Ok {
        return Err(Box::new(record));
    }

    if treatment.sparsity == Some(Sparsity::SemiStructured) {
        record.warnings.push(TWO_OF_FOUR.into());
    }
    let mut job = Job(workload);
    let broken = |error: Failure| end(Status::Failed, error.to_string());
    let clock = stopwatch(device, implementation, &mut context.machines, &mut job);
    let (mut stopwatch, remark) = clock.map_err(broken)?;
    record.warnings.extend(remark);
    record.stopwatch = Some(stopwatch.name().to_owned());
    let step = granularity(stopwatch.as_mut(), &mut job, EMPTY_WINDOWS).map_err(broken)?;
    record.granularity_ns = Some(step.step_ns);
    Ok(Ready { case, job, stopwatch, record })
}

/// Said where f32 was asked for and tensor cores computed something coarser.
const TF32: &str =
    "f32 operands were rounded to TF32 (10-bit mantissas) for tensor cores: not comparable with full f32";
/// Said where half of a weight is zero and all of it is multiplied; block sparsity leaves its zero blocks out.
const TWO_OF_FOUR: &str = "semi-sparse: the pruned weight is stored compressed and multiplied dense, \
     because no kernel here uses sparse tensor cores; the time is not that of sparsity";
/// Launches after the first, so that lazy backends have settled on how they run.
const PRIMING: u32 = 3;
/// Empty windows from which a stopwatch's granularity is read.
const EMPTY_WINDOWS: u32 = 64;

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
    record.stopwatch = assignment.timing.as_ref().map(|_| stopwatch.name().to_owned());
    if output.values[0].is_nan() {
        record.status = Status::Mismatch;
        record.reason = Some("wrong output: the mock device was told to be wrong".into());
    }
    Ok(Ready { case, job: Job(Box::new(workload)), stopwatch: Box::new(stopwatch), record })
}

/// Measures what is ready, together, and records it.
fn time(
    ready: &mut Vec<Ready>,
    assignment: &Assignment,
    timing: &Options,
    context: &Context,
    hear: &mut dyn Hear,
    recorded: &mut [bool],
) -> Result<(), Poisoned> {
    ready.retain(|one| {
        let wrong = one.record.status != Status::Ok;
        if wrong && !recorded[one.case] {
            hear.record(one.case, one.record.clone());
            recorded[one.case] = true;
        }
        !wrong
    });
    let cases: Vec<usize> = ready.iter().map(|one| one.case).collect();
    let mut arms: Vec<Arm<'_>> = Vec::with_capacity(ready.len());
    for one in ready.iter_mut() {
        let arm = Arm::new(&mut one.job, one.stopwatch.as_mut());
        let baseline = assignment.against[one.case].and_then(|against| cases.iter().position(|&case| case == against));
        arms.push(match baseline {
            Some(baseline) => arm.against(baseline),
            None => arm,
        });
    }
    let mut watcher = Watcher { cases: &cases, silence: context.silence, hear, last: 0, poison: None };
    let outcome = catch_unwind(AssertUnwindSafe(|| measure(&mut arms, timing, &mut watcher)));
    let (last, poison) = (watcher.last, watcher.poison.take());
    drop(arms);
    if let Some(poison) = poison {
        return Err(poison);
    }
    let case = cases.get(last).copied().unwrap_or_default();
    let outcome = guarded(case, || outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))?;
    let stopped = hear.interrupted();
    let clocks: Vec<Option<String>> = ready.iter().map(|one| one.record.stopwatch.clone()).collect();
    for (one, outcome) in ready.iter_mut().zip(outcome) {
        // An interrupted measurement is thrown away: a resumed run must give what an uninterrupted one gives.
        if recorded[one.case] || stopped {
            continue;
        }
        let against = assignment.against[one.case];
        fill(&mut one.record, outcome, against.map(|against| assignment.cases[against].id.clone()));
        let other = against.and_then(|against| cases.iter().position(|&case| case == against)).map(|at| &clocks[at]);
        if let (Some(_), Some(Some(theirs)), Some(ours)) = (&one.record.speedup, other, &one.record.stopwatch)
            && theirs != ours
        {
            let warning = format!("the speed-up compares two clocks: {ours} here, {theirs} for the baseline");
            one.record.warnings.push(warning);
        }
        hear.record(one.case, one.record.clone());
        recorded[one.case] = true;
    }
    Ok(())
}

fn fill(record: &mut Record, outcome: Result<Measurement, TimingError>, against: Option<String>) {
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
    record.tflops = record.case.flops.and_then(|flops| finite(flops as f64 / median / 1e3));
    record.gbps = record.case.bytes.and_then(|bytes| finite(bytes as f64 / median));
    record.speedup = measured.comparison.zip(against).map(|(comparison, vs)| Speedup {
        vs,
        ratio: comparison.ratio,
        lo: comparison.lo,
        hi: comparison.hi,
        verdict: comparison.verdict.to_string(),
    });
    if !measured.settled {
        record.warnings.push("the times still moved when the warm-up had to end".into());
    }
    if measured.discarded > 0 {
        let warning =
            format!("{} windows were thrown away: kernels were compiled or tuned inside them", measured.discarded);
        record.warnings.push(warning);
    }
}

/// Passes on what the measurement does, and notices a poisoned process between two windows.
struct Watcher<'a> {
    cases: &'a [usize],
    silence: &'static Silence,
    hear: &'a mut dyn Hear,
    last: usize,
    poison: Option<Poisoned>,
}

impl Observer for Watcher<'_> {
    fn touch(&mut self, arm: usize, phase: Phase) {
        self.notice();
        self.last = arm;
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

fn ended(case: &Case, status: Status, reason: String) -> Record {
    Record { reason: Some(reason), ..Record::new(case.clone(), status) }
}
