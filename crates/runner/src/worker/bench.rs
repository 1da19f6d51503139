//! One assignment from tensors to records: open, gate, prime, measure; without timing, open and gate.

use super::measured::time;
use super::panics::{self, Panic};
use super::protocol::{Assignment, Seen, Stage};
use super::ready::{Ready, make_ready};
use super::sensors::Sensors;
use super::{fusion, iterations, look, memory, profile, traffic};
use crate::peaks::Peaks;
use calorimeter_recipes::{RecipeError, Treatment, Variant};
use calorimeter_sinks::{Case, Record, Status};
use calorimeter_timing::{Granularity, MockClock, Script, Silence};
use calorimeter_zoo::{Device, Implementation, Inputs, Machines, Reference, Task, ZooError};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

/// What the cases of one process share.
pub struct Context {
    pub machines: Machines,
    pub silence: &'static Silence,
    pub sensors: Option<Sensors>,
    pub peaks: Option<Peaks>,
    /// What each clock can tell apart, once measured.
    pub granularities: HashMap<(&'static str, Implementation), Granularity>,
    /// Where tuned kernels are kept.
    pub tuning: Option<PathBuf>,
    /// Whether nothing is timed here and kernels are looked at.
    pub looks: bool,
    /// Where measured peaks are kept.
    pub kept_peaks: Option<PathBuf>,
    /// Memory that was free before anything was allocated: pools keep what they took, and may use it again.
    free_memory: Option<u64>,
}

/// Hears what happens to cases.
pub trait Hear {
    fn touch(&mut self, case: usize, stage: Stage);
    fn record(&mut self, case: usize, record: Record);
    fn seen(&mut self, case: usize, seen: Seen);
    fn interrupted(&self) -> bool;
}

/// A case that left the process in a state that cannot be trusted.
#[derive(Debug)]
pub struct Poisoned {
    pub case: usize,
    pub reason: String,
}

impl Context {
    pub fn new(tuning: Option<PathBuf>, kept_peaks: Option<PathBuf>) -> Self {
        panics::remember();
        let silence = Silence::listen();
        let machines = Machines::default();
        Self {
            machines,
            silence,
            sensors: None,
            peaks: None,
            granularities: HashMap::new(),
            tuning,
            looks: false,
            kept_peaks,
            free_memory: None,
        }
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

/// What the cases of an assignment compute, with the references that they share.
pub struct Common {
    pub task: Task,
    pub device: Device,
    inputs: Option<Inputs>,
    references: Vec<(Treatment, Vec<Reference>)>,
    /// The time that passes on the mock device.
    pub mock: MockClock,
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
    if context.looks {
        return look::look(assignment, &mut common, context, hear);
    }
    let mut recorded = vec![false; assignment.cases.len()];
    for batch in batches(assignment, &common, context, hear, &mut recorded) {
        let mut ready: Vec<Ready> = Vec::new();
        for (case, sets) in batch {
            if hear.interrupted() {
                return Ok(());
            }
            let made = guarded(case, || make_ready(case, sets, assignment, &mut common, context, hear))?;
            match made {
                Ok(made) => ready.push(made),
                Err(record) if !recorded[case] => {
                    trusted(case, &record, context, common.device)?;
                    hear.record(case, *record);
                    recorded[case] = true;
                }
                Err(_) => {}
            }
        }
        let Some(timing) = &assignment.timing else { continue };
        time(&mut ready, assignment, timing, &common, context, hear)?;
        iterations::take(&mut ready, timing, context.silence, hear)?;
        if hear.interrupted() {
            // An interrupted measurement is thrown away: a resumed run must give what an uninterrupted one gives.
            return Ok(());
        }
        profile::trace(&mut ready, assignment, hear)?;
        traffic::count(&mut ready, hear)?;
        let mut records: Vec<(usize, Record)> = ready.into_iter().map(|one| (one.case, one.record)).collect();
        memory::follow(&mut records, assignment, &mut common, context, hear)?;
        fusion::tell(&mut records, assignment);
        for (case, record) in records {
            trusted(case, &record, context, common.device)?;
            if !recorded[case] {
                hear.record(case, record);
                recorded[case] = true;
            }
        }
    }
    Ok(())
}

/// Whether the process may go on after a case: one that failed may have left its device unusable.
fn trusted(case: usize, record: &Record, context: &Context, device: Device) -> Result<(), Poisoned> {
    let failed = record.outcome.status == Status::Failed;
    match failed.then(|| context.machines.broken(device)).flatten() {
        Some(why) => Err(Poisoned { case, reason: record.outcome.reason.clone().unwrap_or(why) }),
        None => Ok(()),
    }
}

fn common(case: &Case, seed: u64) -> Result<Common, Box<dyn std::error::Error>> {
    let task = Task::new(case.workload.as_str().parse()?, &case.shape, case.element, case.output, seed)?;
    let mock = MockClock::new(Script::default());
    Ok(Common { task, device: case.device, inputs: None, references: Vec::new(), mock })
}

pub fn variant(case: &Case) -> Result<Variant, RecipeError> {
    Ok(Variant {
        recipe: case.recipe.as_str().parse()?,
        sparsity: case.sparsity.map(|sparsity| sparsity.as_str().parse()).transpose()?,
    })
}

impl Common {
    pub fn inputs(&mut self) -> &Inputs {
        self.inputs.get_or_insert_with(|| self.task.inputs())
    }

    pub fn references(&mut self, treatment: &Treatment) -> Result<&[Reference], ZooError> {
        let at = match self.references.iter().position(|(known, _)| known == treatment) {
            Some(at) => at,
            None => {
                self.inputs();
                let inputs = self.inputs.as_ref().ok_or_else(|| ZooError::Device("the inputs are gone".into()))?;
                self.references.push((*treatment, self.task.references(inputs, treatment)?));
                self.references.len() - 1
            }
        };
        Ok(&self.references[at].1)
    }
}

/// Cases that fit into memory together, each with its number of buffer sets: all of them, or each with the one it is
/// compared with. A case that does not fit at all is recorded at once. What is not timed is opened one after the other.
fn batches(
    assignment: &Assignment,
    common: &Common,
    context: &mut Context,
    hear: &mut dyn Hear,
    recorded: &mut [bool],
) -> Vec<Vec<(usize, u32)>> {
    let all: Vec<(usize, u32)> = assignment.sets.iter().copied().enumerate().collect();
    let Some(free) = (common.device != Device::Mock).then(|| context.free_memory(common.device)).flatten() else {
        return vec![all];
    };
    let budget = free / 100 * 95;
    let need = |case: usize, sets: u32| {
        let Case { memory_bytes, bytes, .. } = &assignment.cases[case];
        memory_bytes.unwrap_or(0) + u64::from(sets - 1) * bytes.unwrap_or(0)
    };
    let mut fitting = Vec::new();
    for (case, sets) in all {
        // Fewer sets where memory is short, but two at least where there were to be many.
        let least = sets.min(2);
        let room = budget.saturating_sub(need(case, 1)) / assignment.cases[case].bytes.unwrap_or(1).max(1);
        let sets = sets.min(room.saturating_add(1).min(u64::from(u32::MAX)) as u32);
        if need(case, least) <= budget {
            fitting.push((case, sets));
            continue;
        }
        let (need, free) = (need(case, least) as f64 / 1e9, free as f64 / 1e9);
        let reason = format!("does not fit: it needs about {need:.1} GB, {free:.1} GB are free on {}", common.device);
        hear.record(case, ended(&assignment.cases[case], Status::Failed, reason));
        recorded[case] = true;
    }
    let fits = |cases: &[(usize, u32)]| cases.iter().map(|&(case, sets)| need(case, sets)).sum::<u64>() <= budget;
    if fits(&fitting) || assignment.timing.is_none() {
        return vec![fitting];
    }
    fitting
        .iter()
        .map(|&one| {
            let baseline =
                assignment.against[one.0].and_then(|against| fitting.iter().find(|(case, _)| *case == against));
            baseline.copied().filter(|&baseline| fits(&[baseline, one])).into_iter().chain([one]).collect()
        })
        .collect()
}

/// Runs part of a case; a panic is a poisoned process, also one that a device thread kept to itself.
pub fn guarded<T>(case: usize, body: impl FnOnce() -> T) -> Result<T, Poisoned> {
    let outcome = catch_unwind(AssertUnwindSafe(body));
    if let Some(panic) = panics::on_device() {
        return Err(poisoned(case, &panic));
    }
    outcome.map_err(|_| match panics::take().pop() {
        Some(panic) => poisoned(case, &panic),
        None => Poisoned { case, reason: "panicked".into() },
    })
}

pub fn poisoned(case: usize, panic: &Panic) -> Poisoned {
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

pub fn ended(case: &Case, status: Status, reason: String) -> Record {
    Record::without_time(case.clone(), status, reason)
}
