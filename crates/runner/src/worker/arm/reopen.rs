//! A measured case opened once more: its memory lies elsewhere.

use super::gate::judge;
use super::open::open;
use super::prime::prime;
use super::state::{Arm, Job, Unjudged, refused};
use crate::worker::operands::Content;
use crate::worker::scene::Scene;

/// Opens a closed case again and judges its first buffer set; what the passes to come leave on the others is judged after the
/// last window. A case that cannot be opened again, or is wrong there, ends with what its record says.
pub fn reopen(arm: &mut Arm, scene: &mut Scene<'_>) {
    let Arm { assigned, record, .. } = arm;
    let mut opened = match open(assigned, Content::Timed, scene) {
        Ok(opened) => opened,
        Err(why) => {
            *record = *why;
            return;
        }
    };
    let left = prime(assigned, &mut opened, record, Content::Timed, scene)
        .and_then(|left| judge(&opened, &left, record, scene).map(|()| left));
    match left {
        Ok(left) => {
            arm.unjudged = Unjudged::others(opened.setup.sets, left);
            arm.job = Job(opened.workload);
        }
        Err(error) => *record = *refused(&assigned.case, error),
    }
}
