//! The probe of company: a case of which nothing is told but its time, left open for the next one.

use super::clock::with_clock;
use super::open::open;
use super::prime::prime;
use super::state::{Arm, OpenWorkload, Probed, Unjudged, refused};
use crate::worker::operands::Content;
use crate::worker::protocol::AssignedCase;
use crate::worker::scene::Scene;
use calorimeter_case::{Record, Status};

/// Brings a case to where it can be timed, whatever it computes.
pub fn prepare(assigned: &AssignedCase, scene: &mut Scene<'_>) -> Result<Arm, Box<Record>> {
    let case = &assigned.case;
    let mut record = Record::new(case.clone(), Status::Ok);
    let open = match scene.context.probed.take().filter(|probed| probed.case == case.id) {
        Some(Probed { setup, treatment, workload: Some(workload), .. }) => OpenWorkload { workload, setup, treatment },
        _ => {
            let mut open = open(assigned, Content::Timed, scene)?;
            prime(assigned, &mut open, &mut record, Content::Timed, scene).map_err(|error| refused(case, error))?;
            open
        }
    };
    let OpenWorkload { setup, treatment, .. } = open;
    scene.context.probed = Some(Probed { case: case.id.clone(), setup, treatment, workload: None });
    with_clock(assigned, open, record, Unjudged::default(), scene)
}
