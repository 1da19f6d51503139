//! Batches of cases whose memory fits on the device.

use super::context::WorkerContext;
use super::event::{WorkerEvent, WorkerListener};
use super::protocol::{AssignedCase, Assignment};
use calorimeter_case::{Case, Device, Record, Status};

/// Divides the cases into batches: all of them, or each with its baseline. The number of buffer sets is limited by the
/// memory. A case that does not fit alone is recorded as failed. Untimed cases form one batch, because they are opened
/// one after the other.
pub(super) fn batches(
    assignment: &Assignment,
    device: Device,
    context: &mut WorkerContext,
    listener: &mut dyn WorkerListener,
) -> Vec<Vec<AssignedCase>> {
    let Some(free) = context.free_memory(device) else {
        return vec![assignment.cases.clone()];
    };
    let budget = free / 100 * 95;
    let mut fitting: Vec<AssignedCase> = Vec::new();
    for assigned in &assignment.cases {
        let case = &assigned.case;
        // Fewer sets if memory is short, but at least two if several are requested.
        let min_sets = assigned.sets.min(2);
        let additional = budget.saturating_sub(required_bytes(case, 1)) / case.buffer_set_bytes().unwrap_or(1).max(1);
        let sets = assigned.sets.min(additional.saturating_add(1).min(u64::from(u32::MAX)) as u32);
        if required_bytes(case, min_sets) <= budget {
            fitting.push(AssignedCase { sets, ..assigned.clone() });
            continue;
        }
        let (need, free) = (required_bytes(case, min_sets) as f64 / 1e9, free as f64 / 1e9);
        let reason = format!("does not fit: it needs about {need:.1} GB, {free:.1} GB are free on {device}");
        let record = Record::without_time(case.clone(), Status::Failed, reason);
        listener.on_event(WorkerEvent::CaseFinished(Box::new(record)));
    }
    let fits =
        |cases: &[&AssignedCase]| cases.iter().map(|one| required_bytes(&one.case, one.sets)).sum::<u64>() <= budget;
    if !assignment.purpose.is_timed() || fits(&fitting.iter().collect::<Vec<_>>()) {
        return vec![fitting];
    }
    let with_baseline = |one: &AssignedCase| {
        let baseline = one.baseline.as_ref().and_then(|id| fitting.iter().find(|other| other.case.id == *id));
        let baseline = baseline.filter(|baseline| fits(&[baseline, one])).cloned();
        baseline.into_iter().chain([one.clone()]).collect()
    };
    fitting.iter().map(with_baseline).collect()
}

/// Bytes that a case requires with `sets` buffer sets.
fn required_bytes(case: &Case, sets: u32) -> u64 {
    case.memory_bytes.unwrap_or(0) + u64::from(sets - 1) * case.buffer_set_bytes().unwrap_or(0)
}
