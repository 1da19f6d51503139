//! First passes, in which kernels are compiled and tuned.

use super::state::{FirstOutput, OpenWorkload};
use crate::worker::event::Stage;
use crate::worker::group_context::GroupContext;
use crate::worker::operands::InputKind;
use crate::worker::protocol::AssignmentPurpose;
use calorimeter_case::record::{Preparation, Tuning};
use calorimeter_case::{Implementation, Record};
use calorimeter_probe::platforms;
use calorimeter_zoo::ZooError;
use std::time::Instant;

/// Launches after the first, until lazy backends have fixed their execution plan.
const PRIMING_LAUNCHES: u32 = 3;

/// Runs the first pass and reads its outputs, as digests on the device if possible. If the case is to be timed, runs a
/// few more.
pub(super) fn prime(
    open: &mut OpenWorkload<'_>,
    record: &mut Record,
    content: InputKind,
    group: &mut GroupContext<'_>,
) -> Result<FirstOutput, ZooError> {
    let OpenWorkload { assigned, workload, setup } = open;
    let is_probe = matches!(group.assignment.purpose, AssignmentPurpose::ProbeInterference(_));
    let queries =
        if is_probe { Vec::new() } else { group.operands.output_queries(content, &assigned.spec.treatment)? };
    group.listener.report_progress(&assigned.case.id, Stage::Tune);
    let (start, tuned) = (Instant::now(), group.context.silence.tuning_events());
    let check = if queries.is_empty() { None } else { workload.device_check() };
    let digests = check.map(|check| check.output_digests(&queries)).transpose()?.flatten();
    let output = match digests {
        Some(digests) => FirstOutput::Digest(digests),
        None => FirstOutput::Downloaded(workload.outputs()?),
    };
    if group.assignment.purpose.is_timed() {
        // Every buffer set once: a lazy backend may plan each of them separately.
        let lazy =
            setup.implementation == Implementation::Fused && !platforms::for_device(setup.device).is_synchronous();
        let launches = match content {
            InputKind::Gate => 0,
            // A launch may take long, and this process has no state to warm up.
            InputKind::Timed if workload.is_process() => 0,
            InputKind::Timed if lazy => PRIMING_LAUNCHES.max(setup.sets),
            InputKind::Timed => PRIMING_LAUNCHES,
        };
        for _ in 0..launches {
            workload.launch()?;
        }
        workload.synchronize()?;
        if group.operands.simulator.is_some() {
            // Host times vary, and a simulation is reproducible.
            return Ok(output);
        }
        // Adds to the time of the workload on the gate inputs.
        let before = record.preparation.prime_ns.unwrap_or(0);
        let nanos = before + start.elapsed().as_nanos() as u64;
        let events = record.preparation.tuning.map_or(0, |tuning| tuning.events);
        let events = events + group.context.silence.tuning_events() - tuned;
        let tuning = (events > 0).then_some(Tuning { nanos, events });
        record.preparation = Preparation { prime_ns: Some(nanos), tuning, ..Preparation::default() };
    }
    Ok(output)
}
