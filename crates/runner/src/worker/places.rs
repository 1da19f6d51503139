//! Operators in the host's memory, on a processor or an imitated GPU, measured in one place after another.
//!
//! Where allocations come to lie makes a sum of two arrays up to a tenth faster or slower for as long as they lie there: two of
//! a kind, opened one after the other, differ though they do the same. So all are closed and opened again, in another order,
//! and the interval holds what the places make of the time.

use super::arm::{Arm, find_peaks, measure, reopen};
use super::event::Stage;
use super::poison::{Poisoned, guarded};
use super::scene::Scene;
use super::together::of_places;
use crate::platforms;
use calorimeter_case::Record;
use calorimeter_timing::{Options, Verdict};
use calorimeter_zoo::Task;
use std::time::{Duration, Instant};

/// Fewer places say little of how they scatter.
const FEWEST: usize = 4;
/// For so many the time that there is may be exceeded by this.
const PATIENCE: u32 = 3;
/// More are not tried, however much they scatter.
const MOST: usize = 12;

/// Measures the arms: operators in the host's memory in several places, everything else where it is.
pub fn measure_in_places(arms: &mut [Arm], options: &Options, scene: &mut Scene<'_>) -> Result<(), Poisoned> {
    let in_host_memory = platforms::of(scene.operands.device).shares_memory(scene.assignment.device.software);
    if !in_host_memory || !lies_in_places(&scene.operands.task, arms) {
        return measure(arms, options, scene);
    }
    let Some(first) = arms.first().map(|arm| arm.record.case.id.clone()) else { return Ok(()) };
    // Their time is not that of a place.
    scene.listener.touch(&first, Stage::Peaks);
    find_peaks(arms, &first, scene)?;
    let fresh: Vec<Record> = arms.iter().map(|arm| arm.record.clone()).collect();
    let mut found: Vec<Vec<Record>> = vec![Vec::new(); arms.len()];
    let (begun, time) = (Instant::now(), options.max_time * arms.len() as u32);
    let each = of_one_place(options);
    loop {
        let start = Instant::now();
        measure(arms, &each, scene)?;
        for (found, arm) in found.iter_mut().zip(arms.iter()) {
            found.push(arm.record.clone());
        }
        let places = found.first().map_or(0, Vec::len);
        let settled = places >= FEWEST && found.iter().all(|records| is_settled(records, options));
        let most = if places < FEWEST { PATIENCE * time } else { time };
        let over = begun.elapsed() + start.elapsed() > most;
        let failed = arms.iter().any(|arm| !arm.record.is_ok());
        if settled || over || places >= MOST || failed || scene.listener.interrupted() {
            break;
        }
        for (arm, fresh) in arms.iter_mut().zip(&fresh) {
            arm.record = fresh.clone();
            arm.job.close();
        }
        // Who is opened first has the better places.
        let count = arms.len();
        for index in (0..count).map(|index| (index + places) % count) {
            let arm = &mut arms[index];
            let case = arm.record.case.id.clone();
            guarded(&case, || reopen(arm, scene))?;
        }
        let wrong = found.iter_mut().zip(arms.iter()).filter(|(_, arm)| !arm.record.is_ok());
        let wrong = wrong.map(|(found, arm)| found.push(arm.record.clone())).count();
        if wrong > 0 {
            break;
        }
    }
    for (arm, records) in arms.iter_mut().zip(found) {
        if let Some(record) = of_places(records, options.precision) {
            arm.record = record;
        }
    }
    Ok(())
}

/// Whether it matters where its memory lies: operators, and what libraries of others are given.
fn lies_in_places(task: &Task, arms: &[Arm]) -> bool {
    match task {
        Task::Model(_) => false,
        Task::Operator(_) => true,
        Task::Foreign(problem) => problem.buffer_bytes().is_some() && !arms.iter().any(|arm| arm.job.0.is_a_process()),
    }
}

/// What one place gets of the time, so that all of them together take as long as one would.
fn of_one_place(options: &Options) -> Options {
    let part = |time: Duration| time / FEWEST as u32;
    Options {
        min_time: part(options.min_time),
        max_time: options.max_time / (2 * FEWEST as u32),
        warm_up: part(options.warm_up),
        max_warm_up: part(options.max_warm_up),
        ..options.clone()
    }
}

/// Whether what the places found is as narrow as asked for, and the verdict clear.
fn is_settled(records: &[Record], options: &Options) -> bool {
    of_places(records.to_vec(), options.precision).is_some_and(|record| {
        let clear = |verdict| verdict != Verdict::Unclear;
        record.time.converged == Some(true) && record.speedup.is_none_or(|speedup| clear(speedup.verdict))
    })
}
