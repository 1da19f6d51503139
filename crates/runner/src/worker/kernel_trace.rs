//! Kernels of each case as reported by the runtime. A separate worker traces them, because the runtime then
//! synchronizes after every kernel.

use super::event::{Stage, TracedKernels, WorkerEvent};
use super::group_context::GroupContext;
use super::poison::{PoisonedProcess, catch_poison};
use super::protocol::AssignedCase;
use calorimeter_sinks::log_line;
use calorimeter_timing::{Failure, KernelLog};
use calorimeter_zoo::Setup;

/// Untraced passes, until lazy backends have fixed their execution plan.
const PRIMING_PASSES: u32 = 4;
/// Traced passes.
const TRACED_PASSES: u32 = 3;

/// Traces the kernels of every case. A failure is only reported, because the worker that times the case will record the
/// reason.
pub(super) fn trace_kernels(group: &mut GroupContext<'_>) -> Result<(), PoisonedProcess> {
    for assigned in &group.assignment.cases {
        let case = &assigned.case;
        group.listener.report_progress(&case.id, Stage::Profile);
        let kernels = catch_poison(&case.id, || kernels_of_case(assigned, group))?.unwrap_or_else(|error| {
            log_line!("{}: cannot trace its kernels: {error}", case.id);
            TracedKernels::default()
        });
        group.listener.on_event(WorkerEvent::KernelsTraced { case: case.id.clone(), kernels });
    }
    Ok(())
}

fn kernels_of_case(
    AssignedCase { case, spec, .. }: &AssignedCase,
    group: &mut GroupContext<'_>,
) -> Result<TracedKernels, Failure> {
    let (task, device) = (group.operands.task.clone(), group.operands.device);
    let setup = Setup { implementation: case.implementation, device, sets: 1 };
    let mut workload = task.open(
        group.operands.timed_inputs(),
        &spec.treatment,
        Some(spec.variant),
        setup,
        &mut group.context.machines,
    )?;
    for _ in 0..PRIMING_PASSES {
        workload.launch()?;
    }
    workload.synchronize()?;
    let log = KernelLog::start();
    for _ in 0..TRACED_PASSES {
        workload.launch()?;
        workload.synchronize()?;
    }
    Ok(TracedKernels { passes: TRACED_PASSES, kernels: log.finish() })
}
