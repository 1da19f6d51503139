//! Interference probe: only the time matters, and the workload stays open for the next measurement.

use super::clock::attach_clock;
use super::open::open;
use super::prime::prime;
use super::state::{CaseArm, OpenWorkload, PendingChecks, ProbedCase};
use crate::worker::group_context::GroupContext;
use crate::worker::operands::InputKind;
use crate::worker::protocol::AssignedCase;
use calorimeter_case::{Record, Status};
use calorimeter_timing::Failure;

/// Prepares a case for timing without checking its outputs.
pub(super) fn prepare(assigned: &AssignedCase, group: &mut GroupContext<'_>) -> Result<CaseArm, Failure> {
    let case = &assigned.case;
    let mut record = Record::new(case.clone(), Status::Ok);
    let open = match group.context.probed_case.take().filter(|probed| probed.case == case.id) {
        Some(ProbedCase { setup, workload: Some(workload), .. }) => OpenWorkload { assigned, workload, setup },
        _ => {
            let mut open = open(assigned, InputKind::Timed, group)?;
            prime(&mut open, &mut record, InputKind::Timed, group)?;
            open
        }
    };
    group.context.probed_case = Some(ProbedCase { case: case.id.clone(), setup: open.setup, workload: None });
    attach_clock(open, record, PendingChecks::default(), group)
}
