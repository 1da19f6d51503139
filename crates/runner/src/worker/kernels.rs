//! Kernels of each case as reported by the runtime. A separate worker traces them, because the runtime then
//! synchronizes after every kernel.

use super::event::{Event, SeenKernels, Stage};
use super::poison::{Poisoned, guarded};
use super::scene::Scene;
use crate::log_line::log_line;
use calorimeter_case::Case;
use calorimeter_timing::{Failure, HeardKernels};
use calorimeter_zoo::Setup;

/// Untraced passes, until lazy backends have fixed their execution plan.
const PRIMING: u32 = 4;
/// Traced passes.
const PASSES: u32 = 3;

/// Traces the kernels of every case. A failure is only reported, because the worker that times the case will record the
/// reason.
pub fn look(group: &mut Scene<'_>) -> Result<(), Poisoned> {
    for assigned in &group.assignment.cases {
        let case = &assigned.case;
        group.listener.touch(&case.id, Stage::Profile);
        let kernels = guarded(&case.id, || kernels(case, group))?.unwrap_or_else(|error| {
            log_line!("{}: cannot trace its kernels: {error}", case.id);
            SeenKernels::default()
        });
        group.listener.hear(Event::Saw { case: case.id.clone(), kernels });
    }
    Ok(())
}

fn kernels(case: &Case, group: &mut Scene<'_>) -> Result<SeenKernels, Failure> {
    let (task, device) = (group.operands.task.clone(), group.operands.device);
    let treatment = group.operands.treatment(case)?;
    let setup = Setup { implementation: case.implementation, device, sets: 1 };
    let mut workload = task.open(group.operands.inputs(), &treatment, setup, &mut group.context.machines)?;
    for _ in 0..PRIMING {
        workload.launch()?;
    }
    workload.settle()?;
    let log = HeardKernels::begin();
    for _ in 0..PASSES {
        workload.launch()?;
        workload.settle()?;
    }
    Ok(SeenKernels { passes: PASSES, kernels: log.end() })
}
