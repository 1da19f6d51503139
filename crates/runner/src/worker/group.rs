//! Run of an assignment, from tensors to records: open, prime, gate, clock, measure, gate again, inspect. Untimed
//! assignments end after the first gate.

use super::arm::{CaseArm, check_after_timing, prepare, time};
use super::batches::batches;
use super::buffer_placement::measure_placements;
use super::context::WorkerContext;
use super::event::{Stage, WorkerEvent, WorkerListener};
use super::group_context::GroupContext;
use super::input_prefetch::InputPrefetch;
use super::inspect::{inspect, inspections};
use super::kernel_trace;
use super::operands::GroupOperands;
use super::poison::{PoisonCause, PoisonedProcess, catch_poison};
use super::protocol::{AssignedCase, Assignment, AssignmentPurpose};
use super::simulator::Simulator;
use calorimeter_case::{Device, Record, Status};
use calorimeter_external::{start_early, start_foreign_early};
use calorimeter_probe::platforms;
use calorimeter_probe::sensors::Sensors;
use calorimeter_zoo::Task;

/// Runs an assignment. Every case gets a record, unless one poisons the process or the run is interrupted. A baseline
/// gets another record in each batch that needs it; only the first is valid.
pub(super) fn run_assignment(
    assignment: &Assignment,
    context: &mut WorkerContext,
    listener: &mut dyn WorkerListener,
) -> Result<(), PoisonedProcess> {
    let Some(first) = assignment.cases.first() else { return Ok(()) };
    let simulator = platforms::for_device(first.case.device).is_simulated().then(|| Simulator::new(assignment));
    if !matches!(assignment.purpose, AssignmentPurpose::ProbeInterference(_)) {
        context.probed_case = None;
    }
    // Their libraries take seconds to load.
    for AssignedCase { case, spec, .. } in &assignment.cases {
        match &spec.task {
            Task::Foreign(problem) if simulator.is_none() => start_foreign_early(problem, case.implementation),
            _ => start_early(case.implementation),
        }
    }
    let ahead = context.prefetch.take().and_then(InputPrefetch::finish);
    let own = GroupOperands::new(first);
    let mut operands = ahead.filter(|ahead| ahead.is_equivalent(&own)).unwrap_or(own);
    operands.simulator = simulator;
    if let AssignmentPurpose::TraceKernels = assignment.purpose {
        return kernel_trace::trace_kernels(&mut GroupContext {
            assignment,
            operands: &mut operands,
            context,
            listener,
        });
    }
    if assignment.purpose.is_timed() && context.sensors.is_none() {
        // Before the first use of the device, so that the sensors record its idle power.
        listener.report_progress(&first.case.id, Stage::Open);
        context.sensors = Some(Sensors::start(operands.device, &assignment.device));
    }
    let mut inspections = inspections();
    for batch in batches(assignment, operands.device, context, listener) {
        let mut group = GroupContext { assignment, operands: &mut operands, context, listener };
        let mut arms: Vec<CaseArm> = Vec::new();
        for assigned in batch {
            if group.listener.interrupted() {
                return Ok(());
            }
            match catch_poison(&assigned.case.id, || prepare(&assigned, &mut group))? {
                Ok(arm) => arms.push(arm),
                Err(record) => finish_case(*record, &mut group)?,
            }
        }
        if assignment.purpose.is_timed() && group.context.prefetch.is_none() {
            group.context.prefetch = InputPrefetch::start(&assignment.next);
        }
        match &assignment.purpose {
            AssignmentPurpose::Check | AssignmentPurpose::TraceKernels => continue,
            AssignmentPurpose::ProbeInterference(options) => time(&mut arms, options, &mut group)?,
            AssignmentPurpose::Measure(options) => {
                measure_placements(&mut arms, options, &mut group)?;
                check_after_timing(&mut arms, &mut group)?;
                inspect(&mut inspections, &mut arms, &mut group)?;
            }
        }
        if group.listener.interrupted() {
            // An interrupted measurement is discarded: a resumed run must give the results of an uninterrupted one.
            return Ok(());
        }
        for CaseArm { record, job, .. } in arms {
            if record.is_ok() {
                group.operands.passed_cases.insert(record.case.id.clone());
            }
            finish_case(record, &mut group)?;
            if let Some(probed) = &mut group.context.probed_case {
                probed.store(job);
            }
        }
    }
    Ok(())
}

/// Finishes a case. If it failed and left the device unusable, the process must not continue.
fn finish_case(record: Record, group: &mut GroupContext<'_>) -> Result<(), PoisonedProcess> {
    let failed = record.outcome.status == Status::Failed;
    let device: Device = group.operands.device;
    if let Some(why) = failed.then(|| group.context.machines.failure(device)).flatten() {
        let reason = record.outcome.reason.clone().unwrap_or(why);
        return Err(PoisonedProcess { case: record.case.id.clone(), cause: PoisonCause::DeviceFailure, reason });
    }
    group.listener.on_event(WorkerEvent::CaseFinished(Box::new(record)));
    Ok(())
}
