//! One way to compute a group's workload, on its way to a time: open, prime, gate, clock, and measured with the others.

mod clock;
mod gate;
mod measure;
mod mock;
mod open;
mod prime;
mod ranges;
mod roofline;
pub mod sensors;
mod state;
mod tuning;

pub use measure::measure;
pub use state::{Arm, Job, TF32};

use super::protocol::AssignedCase;
use super::scene::Scene;
use crate::platforms;
use calorimeter_case::{Record, Status};
use state::refused;

/// Brings a case to where it can be timed. What cannot be, or is not to be, is answered with its record.
pub fn prepare(assigned: &AssignedCase, scene: &mut Scene<'_>) -> Result<Arm, Box<Record>> {
    let case = &assigned.case;
    if platforms::of(scene.operands.device).is_scripted() {
        return mock::prepare(assigned, scene);
    }
    let mut opened = open::open(assigned, scene)?;
    let primed = prime::prime(assigned, &mut opened, scene).map_err(|error| refused(case, error))?;
    gate::judge(&mut opened, &primed.outputs, scene).map_err(|error| refused(case, error))?;
    if scene.assignment.timing.is_none() || !opened.record.is_ok() {
        return Err(Box::new(opened.record));
    }
    opened.record.execution.autotune = primed.decisions(case, &scene.operands.task);
    clock::clock(assigned, opened, scene)
        .map_err(|error| Box::new(Record::without_time(case.clone(), Status::Failed, error.to_string())))
}
