//! Creation of a workload: tensors are generated, quantized and uploaded.

use super::state::OpenWorkload;
use crate::worker::event::Stage;
use crate::worker::group_context::GroupContext;
use crate::worker::operands::InputKind;
use crate::worker::protocol::AssignedCase;
use calorimeter_zoo::{Setup, ZooError};

/// Opens the workload of a case; for the gate inputs with a single buffer set.
pub(super) fn open<'a>(
    assigned: &'a AssignedCase,
    content: InputKind,
    group: &mut GroupContext<'_>,
) -> Result<OpenWorkload<'a>, ZooError> {
    let case = &assigned.case;
    group.listener.report_progress(&case.id, Stage::Open);
    let timed = group.assignment.purpose.is_timed() && content == InputKind::Timed;
    let sets = if timed { assigned.sets } else { 1 };
    let setup = Setup { implementation: case.implementation, device: group.operands.device, sets };
    let (task, treatment) = (group.operands.task.clone(), &assigned.spec.treatment);
    let workload = match &group.operands.simulator {
        Some(simulator) => simulator.open(case)?,
        None => task.open(
            group.operands.inputs_for(content),
            treatment,
            Some(assigned.spec.variant),
            setup,
            &mut group.context.machines,
        )?,
    };
    let setup = Setup { implementation: task.timing_implementation(case.implementation), ..setup };
    Ok(OpenWorkload { assigned, workload, setup })
}
