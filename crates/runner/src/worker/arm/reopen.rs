//! Reopening of a measured case, so that its memory is allocated elsewhere.

use super::gate::check_first_output;
use super::open::open;
use super::prime::prime;
use super::state::{CaseArm, PendingChecks, refused_record};
use crate::worker::group_context::GroupContext;
use crate::worker::operands::InputKind;
use calorimeter_probe::TimedWorkload;
use calorimeter_zoo::ZooError;

/// Opens a closed case again and checks its first buffer set; the others are checked after the last window. If that
/// fails, the record holds the reason.
pub(crate) fn reopen(arm: &mut CaseArm, group: &mut GroupContext<'_>) {
    if let Err(error) = try_reopen(arm, group) {
        arm.record = *refused_record(&arm.assigned.case, &error.into());
    }
}

fn try_reopen(arm: &mut CaseArm, group: &mut GroupContext<'_>) -> Result<(), ZooError> {
    let mut opened = open(&arm.assigned, InputKind::Timed, group)?;
    let output = prime(&mut opened, &mut arm.record, InputKind::Timed, group)?;
    check_first_output(&opened, &output, &mut arm.record, group)?;
    arm.pending_checks = PendingChecks::for_other_sets(opened.setup.sets, output);
    arm.job = TimedWorkload(opened.workload);
    Ok(())
}
