//! Life of a case in a worker: open, prime, gate, clock, interleaved measurement.

mod autotune_decisions;
mod clock;
mod foreign_outputs;
mod gate;
mod measure;
mod nvtx_range;
mod open;
mod prime;
mod probe;
mod reopen;
mod roofline;
pub(crate) mod state;

pub(crate) use gate::check_after_timing;
pub(crate) use measure::{measure, time};
pub(crate) use reopen::reopen;
pub(crate) use roofline::peaks as find_peaks;
pub(crate) use state::CaseArm;

use super::group_context::GroupContext;
use super::operands::InputKind;
use super::protocol::{AssignedCase, AssignmentPurpose};
use autotune_decisions::AutotuneDecisions;
use calorimeter_case::{Record, Status};
use calorimeter_timing::Failure;
use calorimeter_zoo::backends::autotune_anchor;
use state::refused_record;

/// Prepares a case for timing. Returns its record as an error if it failed or is not to be timed.
pub(crate) fn prepare(assigned: &AssignedCase, group: &mut GroupContext<'_>) -> Result<CaseArm, Box<Record>> {
    try_prepare(assigned, group).unwrap_or_else(|error| Err(refused_record(&assigned.case, &error)))
}

fn try_prepare(assigned: &AssignedCase, group: &mut GroupContext<'_>) -> Result<Result<CaseArm, Box<Record>>, Failure> {
    let (case, is_timed) = (&assigned.case, group.assignment.purpose.is_timed());
    if let AssignmentPurpose::ProbeInterference(_) = group.assignment.purpose {
        return probe::prepare(assigned, group).map(Ok);
    }
    let decisions = group.context.autotune_dir.clone().map(AutotuneDecisions::snapshot);
    let mut record = gate::check_gate_inputs(assigned, group)?;
    let mut open = open::open(assigned, InputKind::Timed, group)?;
    let output = prime::prime(&mut open, &mut record, InputKind::Timed, group)?;
    gate::check_first_output(&open, &output, &mut record, group)?;
    if !is_timed || !record.is_ok() {
        return Ok(Err(Box::new(record)));
    }
    let unjudged = gate::check_buffer_sets(&mut open, output, &mut record, group)?;
    if !record.is_ok() {
        return Ok(Err(Box::new(record)));
    }
    let decided = decisions.map(|decisions| {
        let products = group.operands.task.matmul_shapes().into_iter().map(|sides| sides.map(autotune_anchor));
        decisions.collect(case, &products.collect::<Vec<_>>(), case.implementation)
    });
    record.execution.autotune = decided.unwrap_or_default();
    record.execution.autotune_level = group.tuning_level(case.implementation);
    // The outputs passed the gate, so any error is a failure.
    let attached = clock::attach_clock(open, record, unjudged, group);
    Ok(attached.map_err(|error| Box::new(Record::without_time(case.clone(), Status::Failed, error.to_string()))))
}
