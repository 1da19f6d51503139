//! Creation of a workload: tensors are generated, quantized and uploaded.

use super::state::OpenWorkload;
use crate::worker::event::Stage;
use crate::worker::group_context::GroupContext;
use crate::worker::operands::InputKind;
use crate::worker::protocol::AssignedCase;
use calorimeter_external::open_foreign;
use calorimeter_zoo::{Setup, Task, ZooError};

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
    let machines = &mut group.context.machines;
    let external = match (&group.operands.simulator, &task) {
        (None, Task::Foreign(problem)) => open_foreign(problem, setup, machines),
        _ => None,
    };
    let workload = match (&group.operands.simulator, external) {
        (Some(simulator), _) => simulator.open(case)?,
        (None, Some(workload)) => workload?,
        (None, None) => {
            let inputs = group.operands.inputs_for(content);
            task.open(inputs, treatment, Some(assigned.spec.variant), setup, machines)?
        }
    };
    let setup = Setup { implementation: task.timing_implementation(case.implementation), ..setup };
    Ok(OpenWorkload { assigned, workload, setup })
}
