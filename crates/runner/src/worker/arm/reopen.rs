//! Reopening of a measured case, so that its memory is allocated elsewhere.

use super::gate::judge;
use super::open::open;
use super::prime::prime;
use super::state::{Arm, Job, Unjudged, refused};
use crate::worker::operands::Content;
use crate::worker::scene::Scene;

/// Opens a closed case again and checks its first buffer set; the others are checked after the last window. If that
/// fails, the record holds the reason.
pub fn reopen(arm: &mut Arm, group: &mut Scene<'_>) {
    let Arm { assigned, record, .. } = arm;
    let mut opened = match open(assigned, Content::Timed, group) {
        Ok(opened) => opened,
        Err(why) => {
            *record = *why;
            return;
        }
    };
    let output = prime(assigned, &mut opened, record, Content::Timed, group)
        .and_then(|output| judge(&opened, &output, record, group).map(|()| output));
    match output {
        Ok(output) => {
            arm.unjudged = Unjudged::others(opened.setup.sets, output);
            arm.job = Job(opened.workload);
        }
        Err(error) => *record = *refused(&assigned.case, error),
    }
}
