//! Which kernels each case runs, told by the runtime: in a worker of its own, because there every kernel is waited for.

use super::bench::{Common, Context, Hear, Poisoned, guarded, variant};
use super::protocol::{Assignment, Seen, Stage};
use calorimeter_sinks::Case;
use calorimeter_timing::{Failure, HeardKernels};
use calorimeter_zoo::Setup;

/// Passes before it, so that lazy backends have settled on how they run.
const PRIMING: u32 = 4;
/// Passes that are looked at.
const PASSES: u32 = 3;

/// Looks at every case; one that cannot be looked at is passed over here, and its own worker will say why.
pub fn look(
    assignment: &Assignment,
    common: &mut Common,
    context: &mut Context,
    hear: &mut dyn Hear,
) -> Result<(), Poisoned> {
    for (case, identity) in assignment.cases.iter().enumerate() {
        hear.touch(case, Stage::Profile);
        let seen = guarded(case, || kernels(identity, common, context))?.unwrap_or_else(|error| {
            eprintln!("{}: its kernels were not seen: {error}", identity.id);
            Seen::default()
        });
        hear.seen(case, seen);
    }
    Ok(())
}

fn kernels(case: &Case, common: &mut Common, context: &mut Context) -> Result<Seen, Failure> {
    let (task, device) = (common.task.clone(), common.device);
    let implementation = case.implementation;
    let treatment = task.support(variant(case)?, implementation, device)?;
    let setup = Setup { implementation, device, sets: 1 };
    let mut workload = task.open(common.inputs(), &treatment, setup, &mut context.machines)?;
    for _ in 0..PRIMING {
        workload.launch()?;
    }
    workload.settle()?;
    let heard = HeardKernels::begin();
    for _ in 0..PASSES {
        workload.launch()?;
        workload.settle()?;
    }
    Ok(Seen { passes: PASSES, kernels: heard.end() })
}
