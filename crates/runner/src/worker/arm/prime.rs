//! First passes, in which kernels are compiled and tuned.

use super::state::{Left, OpenWorkload};
use crate::platforms;
use crate::worker::event::Stage;
use crate::worker::operands::Content;
use crate::worker::protocol::AssignedCase;
use crate::worker::scene::Scene;
use calorimeter_case::record::{Preparation, Tuning};
use calorimeter_case::{Implementation, Record};
use calorimeter_zoo::ZooError;
use std::time::Instant;

/// Launches after the first, until lazy backends have fixed their execution plan.
const PRIMING: u32 = 3;

/// Runs the first pass and reads its outputs, as digests on the device if possible. If the case is to be timed, runs a
/// few more.
pub fn prime(
    assigned: &AssignedCase,
    open: &mut OpenWorkload,
    record: &mut Record,
    content: Content,
    group: &mut Scene<'_>,
) -> Result<Left, ZooError> {
    let OpenWorkload { workload, setup, treatment } = open;
    let is_probe = group.assignment.is_probe;
    let queries = if is_probe { Vec::new() } else { group.operands.looks(content, treatment)? };
    group.listener.touch(&assigned.case.id, Stage::Tune);
    let (start, tuned) = (Instant::now(), group.context.silence.tuned());
    let digests = if queries.is_empty() { None } else { workload.seen(&queries)? };
    let output = match digests {
        Some(digests) => Left::Seen(digests),
        None => Left::Whole(workload.outputs()?),
    };
    if group.assignment.timing.is_some() {
        // Every buffer set once: a lazy backend may plan each of them separately.
        let lazy = setup.implementation == Implementation::Fused && !platforms::of(setup.device).is_synchronous();
        let launches = match content {
            Content::Gate => 0,
            // A launch may take long, and this process has no state to warm up.
            Content::Timed if workload.is_a_process() => 0,
            Content::Timed if lazy => PRIMING.max(setup.sets),
            Content::Timed => PRIMING,
        };
        for _ in 0..launches {
            workload.launch()?;
        }
        workload.settle()?;
        // Adds to the time of the workload on the gate inputs.
        let before = record.preparation.prime_ns.unwrap_or(0);
        let nanos = before + start.elapsed().as_nanos() as u64;
        let events = record.preparation.tuning.map_or(0, |tuning| tuning.events);
        let events = events + group.context.silence.tuned() - tuned;
        let tuning = (events > 0).then_some(Tuning { nanos, events });
        record.preparation = Preparation { prime_ns: Some(nanos), tuning, ..Preparation::default() };
    }
    Ok(output)
}
