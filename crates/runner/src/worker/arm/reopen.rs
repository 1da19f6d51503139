//! Reopening of a measured case, so that its memory is allocated elsewhere.

use super::gate::check_first_output;
use super::open::open;
use super::prime::prime;
use super::state::{CaseArm, PendingChecks, TimedWorkload, refused_record};
use crate::worker::group_context::GroupContext;
use crate::worker::operands::InputKind;

/// Opens a closed case again and checks its first buffer set; the others are checked after the last window. If that
/// fails, the record holds the reason.
pub fn reopen(arm: &mut CaseArm, group: &mut GroupContext<'_>) {
    let CaseArm { assigned, record, .. } = arm;
    let mut opened = match open(assigned, InputKind::Timed, group) {
        Ok(opened) => opened,
        Err(why) => {
            *record = *why;
            return;
        }
    };
    let output = prime(&mut opened, record, InputKind::Timed, group)
        .and_then(|output| check_first_output(&opened, &output, record, group).map(|()| output));
    match output {
        Ok(output) => {
            arm.pending_checks = PendingChecks::for_other_sets(opened.setup.sets, output);
            arm.job = TimedWorkload(opened.workload);
        }
        Err(error) => *record = *refused_record(&assigned.case, error),
    }
}
