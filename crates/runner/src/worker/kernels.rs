//! Which kernels each case runs, told by the runtime: in a worker of its own, because there every kernel is waited for.

use super::event::{Event, SeenKernels, Stage};
use super::poison::{Poisoned, guarded};
use super::scene::Scene;
use crate::tell::tell;
use calorimeter_case::Case;
use calorimeter_timing::{Failure, HeardKernels};
use calorimeter_zoo::Setup;

/// Passes before it, so that lazy backends have settled on how they run.
const PRIMING: u32 = 4;
/// Passes that are looked at.
const PASSES: u32 = 3;

/// Looks at every case; one that cannot be looked at is passed over here, and its own worker will say why.
pub fn look(scene: &mut Scene<'_>) -> Result<(), Poisoned> {
    for assigned in &scene.assignment.cases {
        let case = &assigned.case;
        scene.listener.touch(&case.id, Stage::Profile);
        let kernels = guarded(&case.id, || kernels(case, scene))?.unwrap_or_else(|error| {
            tell!("{}: its kernels were not seen: {error}", case.id);
            SeenKernels::default()
        });
        scene.listener.hear(Event::Saw { case: case.id.clone(), kernels });
    }
    Ok(())
}

fn kernels(case: &Case, scene: &mut Scene<'_>) -> Result<SeenKernels, Failure> {
    let (task, device) = (scene.operands.task.clone(), scene.operands.device);
    let treatment = scene.operands.treatment(case)?;
    let setup = Setup { implementation: case.implementation, device, sets: 1 };
    let mut workload = task.open(scene.operands.inputs(), &treatment, setup, &mut scene.context.machines)?;
    for _ in 0..PRIMING {
        workload.launch()?;
    }
    workload.settle()?;
    let heard = HeardKernels::begin();
    for _ in 0..PASSES {
        workload.launch()?;
        workload.settle()?;
    }
    Ok(SeenKernels { passes: PASSES, kernels: heard.end() })
}
