//! Life of a case in a worker: open, prime, gate, clock, interleaved measurement.

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

/// Prepares a case for timing. Returns its record as an error if it failed or is not to be timed.
pub fn prepare(assigned: &AssignedCase, group: &mut Scene<'_>) -> Result<Arm, Box<Record>> {
    let case = &assigned.case;
    if platforms::of(group.operands.device).is_scripted() {
        return mock::prepare(assigned, group);
    }
    if group.assignment.is_probe {
        return probe::prepare(assigned, group);
    }
    let decisions = group.context.tuning.clone().map(Decisions::before);
    let mut record = gate::try_out(assigned, group)?;
    let mut open = open::open(assigned, Content::Timed, group)?;
    let output =
        prime::prime(assigned, &mut open, &mut record, Content::Timed, group).map_err(|error| refused(case, error))?;
    gate::judge(&open, &output, &mut record, group).map_err(|error| refused(case, error))?;
    if group.assignment.timing.is_none() || !record.is_ok() {
        return Err(Box::new(record));
    }
    let unjudged = gate::judge_sets(&mut open, output, &mut record, group).map_err(|error| refused(case, error))?;
    if !record.is_ok() {
        return Err(Box::new(record));
    }
    let decided = decisions.map(|decisions| {
        let products = group.operands.task.products().into_iter().map(|sides| sides.map(tuned_as));
        decisions.after(case, &products.collect::<Vec<_>>(), case.implementation)
    });
    record.execution.autotune = decided.unwrap_or_default();
    record.execution.autotune_level = group.level(case.implementation);
    clock::with_clock(assigned, open, record, unjudged, group)
}
