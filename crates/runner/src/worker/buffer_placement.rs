//! Repeated measurement with different buffer placements, for operators in host memory.
//!
//! Placement in memory makes an array addition up to 10 % faster or slower for the life of the allocation: two
//! identical cases differ if they are opened one after the other. All cases are therefore closed and reopened in
//! rotated order, and the interval covers the variation between placements.

use super::arm::{CaseArm, find_peaks, measure, reopen};
use super::combine::combine_placements;
use super::event::Stage;
use super::group_context::GroupContext;
use super::poison::{PoisonedProcess, catch_poison};
use calorimeter_case::Record;
use calorimeter_probe::platforms;
use calorimeter_timing::{Options, Verdict};
use calorimeter_zoo::Task;
use std::time::{Duration, Instant};

/// Minimum number of placements for an estimate of their variation.
const MIN_PLACEMENTS: usize = 4;
/// Factor by which the time limit may be exceeded to reach the minimum.
const OVERTIME_FACTOR: u32 = 3;
/// Maximum number of placements.
const MAX_PLACEMENTS: usize = 12;

/// Measures the arms: operators in host memory with several placements, others with one.
pub(super) fn measure_placements(
    arms: &mut [CaseArm],
    options: &Options,
    group: &mut GroupContext<'_>,
) -> Result<(), PoisonedProcess> {
    let in_host_memory = platforms::for_device(group.operands.device).shares_memory(group.assignment.device.software);
    if !in_host_memory || !depends_on_placement(&group.operands.task, arms) {
        return measure(arms, options, group);
    }
    let Some(first) = arms.first().map(|arm| arm.record.case.id.clone()) else { return Ok(()) };
    // Peaks are measured here, so that their time is not charged to a placement.
    group.listener.report_progress(&first, Stage::Peaks);
    find_peaks(arms, &first, group)?;
    let fresh: Vec<Record> = arms.iter().map(|arm| arm.record.clone()).collect();
    let mut found: Vec<Vec<Record>> = vec![Vec::new(); arms.len()];
    let (begin, time) = (Instant::now(), options.max_time * arms.len() as u32);
    let each = options_per_placement(options);
    loop {
        let start = Instant::now();
        measure(arms, &each, group)?;
        for (found, arm) in found.iter_mut().zip(arms.iter()) {
            found.push(arm.record.clone());
        }
        let places = found.first().map_or(0, Vec::len);
        let settled = places >= MIN_PLACEMENTS && found.iter().all(|records| is_converged(records, options));
        let limit = if places < MIN_PLACEMENTS { OVERTIME_FACTOR * time } else { time };
        let over = begin.elapsed() + start.elapsed() > limit;
        let failed = arms.iter().any(|arm| !arm.record.is_ok());
        if settled || over || places >= MAX_PLACEMENTS || failed || group.listener.interrupted() {
            break;
        }
        for (arm, fresh) in arms.iter_mut().zip(&fresh) {
            arm.record = fresh.clone();
            arm.job.close();
        }
        // The case that is opened first gets the better placement.
        let count = arms.len();
        for index in (0..count).map(|index| (index + places) % count) {
            let arm = &mut arms[index];
            let case = arm.record.case.id.clone();
            catch_poison(&case, || reopen(arm, group))?;
        }
        let wrong = found.iter_mut().zip(arms.iter()).filter(|(_, arm)| !arm.record.is_ok());
        let wrong = wrong.map(|(found, arm)| found.push(arm.record.clone())).count();
        if wrong > 0 {
            break;
        }
    }
    for (arm, records) in arms.iter_mut().zip(found) {
        if let Some(record) = combine_placements(records, options.precision) {
            arm.record = record;
        }
    }
    Ok(())
}

/// True if placement affects the time: for operators and for libraries of foreign programs.
fn depends_on_placement(task: &Task, arms: &[CaseArm]) -> bool {
    match task {
        Task::Model(_) => false,
        Task::Operator(_) => true,
        Task::Foreign(problem) => problem.buffer_bytes().is_some() && !arms.iter().any(|arm| arm.job.0.is_process()),
    }
}

/// Options for one placement, so that all of them take as long as one measurement.
fn options_per_placement(options: &Options) -> Options {
    let part = |time: Duration| time / MIN_PLACEMENTS as u32;
    Options {
        min_time: part(options.min_time),
        max_time: options.max_time / (2 * MIN_PLACEMENTS as u32),
        warm_up: part(options.warm_up),
        max_warm_up: part(options.max_warm_up),
        ..options.clone()
    }
}

/// True if the interval over placements meets the requested precision and the verdict is clear.
fn is_converged(records: &[Record], options: &Options) -> bool {
    combine_placements(records.to_vec(), options.precision).is_some_and(|record| {
        let clear = |verdict| verdict != Verdict::Unclear;
        record.time.converged == Some(true) && record.speedup.is_none_or(|speedup| clear(speedup.verdict))
    })
}
