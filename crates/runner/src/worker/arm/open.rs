//! Tensors made, quantized and on their device.

use super::state::{OpenWorkload, refused};
use crate::worker::event::Stage;
use crate::worker::operands::Content;
use crate::worker::protocol::AssignedCase;
use crate::worker::scene::Scene;
use calorimeter_case::Record;
use calorimeter_zoo::Setup;

/// Opens a case's workload, that of the gate on a single buffer set.
pub fn open(assigned: &AssignedCase, content: Content, scene: &mut Scene<'_>) -> Result<OpenWorkload, Box<Record>> {
    let case = &assigned.case;
    let treatment = scene.operands.treatment(case).map_err(|error| refused(case, error))?;
    scene.listener.touch(&case.id, Stage::Open);
    let timed = scene.assignment.timing.is_some() && content == Content::Timed;
    let sets = if timed { assigned.sets } else { 1 };
    let setup = Setup { implementation: case.implementation, device: scene.operands.device, sets };
    let (task, inputs) = (scene.operands.task.clone(), scene.operands.inputs_of(content));
    let workload =
        task.open(inputs, &treatment, setup, &mut scene.context.machines).map_err(|error| refused(case, error))?;
    let setup = Setup { implementation: task.clocked_as(case.implementation), ..setup };
    Ok(OpenWorkload { workload, setup, treatment })
}
