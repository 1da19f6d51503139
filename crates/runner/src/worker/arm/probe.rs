//! Interference probe: only the time matters, and the workload stays open for the next measurement.

use super::clock::with_clock;
use super::open::open;
use super::prime::prime;
use super::state::{Arm, OpenWorkload, Probed, Unjudged, refused};
use crate::worker::operands::Content;
use crate::worker::protocol::AssignedCase;
use crate::worker::scene::Scene;
use calorimeter_case::{Record, Status};

/// Prepares a case for timing without checking its outputs.
pub fn prepare(assigned: &AssignedCase, group: &mut Scene<'_>) -> Result<Arm, Box<Record>> {
    let case = &assigned.case;
    let mut record = Record::new(case.clone(), Status::Ok);
    let open = match group.context.probed.take().filter(|probed| probed.case == case.id) {
        Some(Probed { setup, treatment, workload: Some(workload), .. }) => OpenWorkload { workload, setup, treatment },
        _ => {
            let mut open = open(assigned, Content::Timed, group)?;
            prime(assigned, &mut open, &mut record, Content::Timed, group).map_err(|error| refused(case, error))?;
            open
        }
    };
    let OpenWorkload { setup, treatment, .. } = open;
    group.context.probed = Some(Probed { case: case.id.clone(), setup, treatment, workload: None });
    with_clock(assigned, open, record, Unjudged::default(), group)
}
