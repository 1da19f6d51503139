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
    let outputs = prime(assigned, &mut opened, record, Content::Timed, scene)
        .and_then(|outputs| judge(&opened, &outputs, record, scene).map(|()| outputs));
    match outputs {
        Ok(right) => {
            arm.unjudged = Unjudged { sets: (1..opened.setup.sets).collect(), right };
            arm.job = Job(opened.workload);
        }
        Err(error) => *record = *refused(&assigned.case, error),
    }
}
