//! One way to compute a group's workload, on its way to a time: open, prime, gate, clock, and measured with the others.

mod beside_first;
mod clock;
mod gate;
mod measure;
mod mock;
mod open;
mod prime;
mod probe;
mod ranges;
mod reopen;
mod roofline;
pub mod sensors;
pub mod state;
mod tuning;

pub use gate::judge_again;
pub use measure::{measure, time};
pub use reopen::reopen;
pub use roofline::peaks as find_peaks;
pub use state::{Arm, Job};

use super::operands::Content;
use super::protocol::AssignedCase;
use super::scene::Scene;
use crate::platforms;
use calorimeter_case::Record;
use calorimeter_zoo::backends::tuned_as;
use state::refused;
use tuning::Decisions;

/// Brings a case to where it can be timed. What cannot be, or is not to be, is answered with its record.
pub fn prepare(assigned: &AssignedCase, scene: &mut Scene<'_>) -> Result<Arm, Box<Record>> {
    let case = &assigned.case;
    if platforms::of(scene.operands.device).is_scripted() {
        return mock::prepare(assigned, scene);
    }
    if scene.assignment.is_probe {
        return probe::prepare(assigned, scene);
    }
    let decisions = scene.context.tuning.clone().map(Decisions::before);
    let mut record = gate::try_out(assigned, scene)?;
    let mut open = open::open(assigned, Content::Timed, scene)?;
    let left =
        prime::prime(assigned, &mut open, &mut record, Content::Timed, scene).map_err(|error| refused(case, error))?;
    gate::judge(&open, &left, &mut record, scene).map_err(|error| refused(case, error))?;
    if scene.assignment.timing.is_none() || !record.is_ok() {
        return Err(Box::new(record));
    }
    let unjudged = gate::judge_sets(&mut open, left, &mut record, scene).map_err(|error| refused(case, error))?;
    if !record.is_ok() {
        return Err(Box::new(record));
    }
    let decided = decisions.map(|decisions| {
        let products = scene.operands.task.products().into_iter().map(|sides| sides.map(tuned_as));
        decisions.after(case, &products.collect::<Vec<_>>(), case.implementation)
    });
    record.execution.autotune = decided.unwrap_or_default();
    record.execution.autotune_level = scene.level(case.implementation);
    clock::with_clock(assigned, open, record, unjudged, scene)
}
