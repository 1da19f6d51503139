//! Stopwatch of a case: its resolution and the kernels that it reports.

use super::state::{CaseArm, OpenWorkload, PendingChecks};
use crate::worker::event::TracedKernels;
use crate::worker::group_context::GroupContext;
use calorimeter_case::record::Rotation;
use calorimeter_case::{Clock, Implementation, Record, Warning, required_buffer_sets};
use calorimeter_probe::devices::cache_multiple;
use calorimeter_probe::regimes::{remote_stopwatch, stopwatch};
use calorimeter_probe::{TimedWorkload, peaks, platforms};
use calorimeter_recipes::Sparsity;
use calorimeter_timing::{ClockResolution, EnqueueClock, Failure, Stopwatch};

/// Resolution in nanoseconds that is fine enough to skip further measurements of it.
const FINE_STEP_NS: u64 = 1000;

/// Selects the stopwatch and queries its resolution and kernels before the measurement.
pub(super) fn attach_clock(
    open: OpenWorkload<'_>,
    mut record: Record,
    unjudged: PendingChecks,
    group: &mut GroupContext<'_>,
) -> Result<CaseArm, Failure> {
    let OpenWorkload { assigned, workload, setup } = open;
    let (case, treatment, sets) = (&assigned.case, &assigned.spec.treatment, setup.sets);
    let platform = platforms::for_device(setup.device);
    let factors = group.operands.task.matmul_element(treatment, setup.implementation);
    let kinds = match case.flops {
        Some(_) => peaks::matmul_precisions(case, factors, treatment, workload.may_use_tf32()),
        None => Vec::new(),
    };
    let algorithm = workload.kernel();
    let mut job = TimedWorkload(workload);
    let simulated = group.operands.simulator.as_ref().map(|simulator| simulator.stopwatch(case)).transpose()?;
    let is_simulated = simulated.is_some();
    let (mut stopwatch, warning) = match simulated {
        Some(stopwatch) => (stopwatch, None),
        None => match job.0.remote_passes() {
            Some(passes) => {
                let clock = remote_stopwatch(case.regime.clock(), passes, sets)?;
                let warning = clock
                    .is_fallback()
                    .then(|| Warning::fallback_clock("no kernel records in the other process", "from CUDA events"));
                (Box::new(clock) as Box<_>, warning)
            }
            None => stopwatch(case.regime, setup, &mut group.context.machines, &mut job)?,
        },
    };
    record.warnings.extend(warning);
    record.execution.stopwatch = Some(stopwatch.name().to_owned());
    if !is_simulated {
        let step = granularity(setup.implementation, stopwatch.as_mut(), &mut job, group)?;
        record.preparation.granularity_ns = Some(step.step_ns);
        record.preparation.empty_window_ns = Some(step.empty_ns);
    }
    let kernels = stopwatch.kernel_tracing().map(|tracing| tracing.kernel_calls(&mut job, sets)).transpose()?;
    let (kernels, passes) = match (kernels, assigned.kernels.clone()) {
        (None, Some(TracedKernels { passes, kernels })) => (Some(count_calls(kernels)), passes),
        (kernels, _) => (kernels, sets),
    };
    record.execution.kernel_launches = kernels.as_ref().map(|kernels| total_calls(kernels) as f64 / f64::from(passes));
    let names = kernels.map(|kernels| kernel_names(kernels, passes));
    record.execution.kernel = match (names, algorithm) {
        // Another process reports the versions of its libraries.
        (Some(names), Some(versions)) if job.0.remote_passes().is_some() => Some(format!("{names} ({versions})")),
        (names, algorithm) => names.or(algorithm),
    };
    let rotates = case.regime.rotates() && platform.memory().is_some();
    if let Some(bytes) = case.buffer_set_bytes().filter(|_| rotates) {
        let facts = &group.assignment.device;
        let rotation = Rotation { sets, bytes, cache_bytes: Some(facts.cache_bytes) };
        record.warnings.extend(cache_warning(&rotation, cache_multiple(setup.device, facts.software)));
        record.execution.rotation = Some(rotation);
    }
    if case.regime.clock() == Clock::Device && !platform.is_synchronous() && !is_simulated {
        record.time.enqueue_ns = Some(enqueue_nanos(&mut job, sets)?);
    }
    let share = match treatment.sparsity {
        Some(Sparsity::Block { percent, .. }) => 1.0 - f64::from(percent) / 100.0,
        _ => 1.0,
    };
    Ok(CaseArm {
        job,
        stopwatch,
        record,
        assigned: assigned.clone(),
        matmul_kinds: kinds,
        computed_share: share,
        pending_checks: unjudged,
    })
}

/// Resolution of the clock; it is a property of the clock, not of the case.
fn granularity(
    implementation: Implementation,
    stopwatch: &mut dyn Stopwatch,
    job: &mut TimedWorkload,
    group: &mut GroupContext<'_>,
) -> Result<ClockResolution, Failure> {
    let key = (stopwatch.name(), implementation);
    let known = group.context.granularities.get(&key).copied();
    let step = match known {
        Some(known) if known.step_ns <= FINE_STEP_NS => known,
        // A few long launches overestimate the resolution, so that the next case measures it again.
        _ => {
            let new = stopwatch.resolution(job)?;
            known.filter(|known| known.step_ns < new.step_ns).unwrap_or(new)
        }
    };
    group.context.granularities.insert(key, step);
    Ok(step)
}

/// Joins the kernel names of one pass.
fn kernel_names(kernels: Vec<(String, u64)>, passes: u32) -> String {
    let names = kernels.into_iter().map(|(name, calls)| match calls / u64::from(passes) {
        0 | 1 => name,
        calls => format!("{calls} x {name}"),
    });
    names.collect::<Vec<_>>().join(" + ")
}

/// Counts the calls of each kernel, in the order of first calls.
fn count_calls(kernels: Vec<(String, u64)>) -> Vec<(String, u64)> {
    let mut counted: Vec<(String, u64)> = Vec::new();
    for (name, _) in kernels {
        match counted.iter_mut().find(|(known, _)| *known == name) {
            Some((_, calls)) => *calls += 1,
            None => counted.push((name, 1)),
        }
    }
    counted
}

fn total_calls(kernels: &[(String, u64)]) -> u64 {
    kernels.iter().map(|(_, calls)| calls).sum()
}

/// Warns if the buffer sets total less than `times` times the cache size, so that operands may be cached.
fn cache_warning(rotation: &Rotation, times: u64) -> Option<Warning> {
    let cache = rotation.cache_bytes?;
    let few = u64::from(rotation.sets) < required_buffer_sets(cache, rotation.bytes, times);
    // The text contains no figure of the case, so that a summary can merge equal warnings.
    few.then(|| Warning::cached_operands(times))
}

/// Host time in nanoseconds to enqueue a launch: the minimum over a few short windows.
fn enqueue_nanos(job: &mut TimedWorkload, sets: u32) -> Result<f64, Failure> {
    const WINDOWS: u32 = 5;
    const LAUNCHES: u32 = 8;
    let mut clock: Box<dyn Stopwatch> = match job.0.remote_passes() {
        Some(passes) => Box::new(remote_stopwatch(Clock::Enqueuing, passes, sets)?),
        None => Box::new(EnqueueClock),
    };
    let mut least = f64::INFINITY;
    for _ in 0..WINDOWS {
        let nanos = clock.window(job, LAUNCHES)?.resolve()?;
        least = least.min(nanos as f64 / f64::from(LAUNCHES));
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_buffer_sets_give_a_warning() {
        let of = |sets, bytes| cache_warning(&Rotation { sets, bytes, cache_bytes: Some(48 << 20) }, 3);
        assert_eq!(of(4, 48 << 20), None);
        assert_eq!(of(512, 1 << 20), None);
        // More than the cache, but fewer sets than required: memory was short.
        assert_eq!(of(3, 32 << 20), Some(Warning::cached_operands(3)));
        // Maximum number of buffer sets.
        assert!(of(512, 4096).is_some());
    }
}
