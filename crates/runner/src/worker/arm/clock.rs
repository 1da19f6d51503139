//! The stopwatch of a case, what it can tell apart, and which kernels it sees.

use super::state::{Arm, Job, OpenWorkload, Unjudged};
use crate::devices::times_the_cache;
use crate::peaks;
use crate::platforms;
use crate::regimes::stopwatch;
use crate::worker::event::SeenKernels;
use crate::worker::protocol::AssignedCase;
use crate::worker::scene::Scene;
use calorimeter_case::record::Rotation;
use calorimeter_case::{Clock, Implementation, Record, Status, sets_needed};
use calorimeter_recipes::Sparsity;
use calorimeter_timing::{Enqueue, Failure, Granularity, Stopwatch};

/// A step of a clock that need not be looked for again.
const FINE_NS: u64 = 1000;

/// Chooses the stopwatch and asks it what it sees before anything is timed.
pub fn with_clock(
    assigned: &AssignedCase,
    open: OpenWorkload,
    record: Record,
    unjudged: Unjudged,
    scene: &mut Scene<'_>,
) -> Result<Arm, Box<Record>> {
    clock(assigned, open, record, unjudged, scene)
        .map_err(|error| Box::new(Record::without_time(assigned.case.clone(), Status::Failed, error.to_string())))
}

fn clock(
    assigned: &AssignedCase,
    open: OpenWorkload,
    mut record: Record,
    unjudged: Unjudged,
    scene: &mut Scene<'_>,
) -> Result<Arm, Failure> {
    let OpenWorkload { workload, setup, treatment } = open;
    let (case, sets) = (&assigned.case, setup.sets);
    let factors = scene.operands.task.factors(&treatment, setup.implementation);
    let kinds = match case.flops {
        Some(_) => peaks::kinds(case, factors, &treatment, workload.may_use_tf32()),
        None => Vec::new(),
    };
    let algorithm = workload.kernel();
    let mut job = Job(workload);
    let (mut stopwatch, remark) = stopwatch(case.regime, setup, &mut scene.context.machines, &mut job)?;
    record.outcome.warnings.extend(remark);
    record.execution.stopwatch = Some(stopwatch.name().to_owned());
    let step = granularity(setup.implementation, stopwatch.as_mut(), &mut job, scene)?;
    record.preparation.granularity_ns = Some(step.step_ns);
    record.preparation.empty_window_ns = Some(step.empty_ns);
    let (kernels, passes) = match (stopwatch.ran(&mut job, sets)?, assigned.kernels.clone()) {
        (None, Some(SeenKernels { passes, kernels })) => (Some(counted(kernels)), passes),
        (kernels, _) => (kernels, sets),
    };
    record.execution.kernel_launches = kernels.as_ref().map(|kernels| calls(kernels) as f64 / f64::from(passes));
    record.execution.kernel = kernels.map(|kernels| names(kernels, passes)).or(algorithm);
    if let Some(bytes) = case.set_bytes().filter(|_| case.regime.rotates()) {
        let facts = &scene.assignment.device;
        let rotation = Rotation { sets, bytes, cache_bytes: Some(facts.cache_bytes) };
        record.outcome.warnings.extend(cached(&rotation, times_the_cache(setup.device, facts.software)));
        record.execution.rotation = Some(rotation);
    }
    if case.regime.clock() == Clock::Device && !platforms::of(setup.device).is_synchronous() {
        record.time.enqueue_ns = Some(enqueue(&mut job)?);
    }
    let share = match treatment.sparsity {
        Some(Sparsity::Block { percent, .. }) => 1.0 - f64::from(percent) / 100.0,
        _ => 1.0,
    };
    Ok(Arm { job, stopwatch, record, assigned: assigned.clone(), kinds, share, unjudged })
}

/// What a clock can tell apart: it is the clock's, not the case's.
fn granularity(
    implementation: Implementation,
    stopwatch: &mut dyn Stopwatch,
    job: &mut Job,
    scene: &mut Scene<'_>,
) -> Result<Granularity, Failure> {
    let key = (stopwatch.name(), implementation);
    let known = scene.context.granularities.get(&key).copied();
    let step = match known {
        Some(known) if known.step_ns <= FINE_NS => known,
        // Few and long launches show a step that is too large: the next case looks again.
        _ => {
            let new = stopwatch.granularity(job)?;
            known.filter(|known| known.step_ns < new.step_ns).unwrap_or(new)
        }
    };
    scene.context.granularities.insert(key, step);
    Ok(step)
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

/// What to say of buffer sets that are fewer than it takes to exceed the cache so many times: some of what they hold may be
/// in it.
fn cached(rotation: &Rotation, times: u64) -> Option<String> {
    let cache = rotation.cache_bytes?;
    let few = u64::from(rotation.sets) < sets_needed(cache, rotation.bytes, times);
    // No figure of the case's own: in a summary, cases with one warning share a line.
    few.then(|| {
        format!("operands may come from the cache: the buffer sets together are no more than {times} times its size")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_buffer_sets_than_the_rule_asks_for_are_told() {
        let of = |sets, bytes| cached(&Rotation { sets, bytes, cache_bytes: Some(48 << 20) }, 3);
        assert_eq!(of(4, 48 << 20), None);
        assert_eq!(of(512, 1 << 20), None);
        // Above the cache, and still fewer than were needed: memory was short.
        assert!(of(3, 32 << 20).unwrap().contains("no more than 3 times its size"));
        // As many as are ever made.
        assert!(of(512, 4096).is_some());
    }
}
