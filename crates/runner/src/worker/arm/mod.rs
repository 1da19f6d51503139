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

pub use gate::judge_again;
pub use measure::measure;
pub use state::{Arm, Job, TF32};

use super::operands::Content;
use super::protocol::AssignedCase;
use super::scene::Scene;
use crate::platforms;
use calorimeter_case::{Record, Status};
use state::{Opened, refused};
use tuning::Decisions;

/// Brings a case to where it can be timed. What cannot be, or is not to be, is answered with its record.
pub fn prepare(assigned: &AssignedCase, scene: &mut Scene<'_>) -> Result<Arm, Box<Record>> {
    let case = &assigned.case;
    if platforms::of(scene.operands.device).is_scripted() {
        return mock::prepare(assigned, scene);
    }
    let decisions = scene.context.tuning.clone().map(Decisions::before);
    let tried = gate::try_out(assigned, scene)?;
    let mut opened = Opened { record: tried, ..open::open(assigned, Content::Timed, scene)? };
    let outputs = prime::prime(assigned, &mut opened, Content::Timed, scene).map_err(|error| refused(case, error))?;
    gate::judge(&mut opened, &outputs, scene).map_err(|error| refused(case, error))?;
    if scene.assignment.timing.is_none() || !opened.record.is_ok() {
        return Err(Box::new(opened.record));
    }
    gate::judge_sets(&mut opened, outputs, scene).map_err(|error| refused(case, error))?;
    if !opened.record.is_ok() {
        return Err(Box::new(opened.record));
    }
    let products = scene.operands.task.products();
    let decided = decisions.map(|decisions| decisions.after(case, &products, case.implementation));
    opened.record.execution.autotune = decided.unwrap_or_default();
    clock::clock(assigned, opened, scene)
        .map_err(|error| Box::new(Record::without_time(case.clone(), Status::Failed, error.to_string())))
}
