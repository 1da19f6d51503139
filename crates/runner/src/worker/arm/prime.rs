//! The first passes, in which kernels are compiled and tuned.

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

/// Launches after the first, so that lazy backends have settled on how they run.
const PRIMING: u32 = 3;

/// Runs a pass whose outputs are looked at where they are, or read, and a few more where the case is to be timed.
pub fn prime(
    assigned: &AssignedCase,
    open: &mut OpenWorkload,
    record: &mut Record,
    content: Content,
    scene: &mut Scene<'_>,
) -> Result<Left, ZooError> {
    let OpenWorkload { workload, setup, treatment } = open;
    let is_probe = scene.assignment.is_probe;
    let looks = if is_probe { Vec::new() } else { scene.operands.looks(content, treatment)? };
    scene.listener.touch(&assigned.case.id, Stage::Tune);
    let (start, tuned) = (Instant::now(), scene.context.silence.tuned());
    let seen = if looks.is_empty() { None } else { workload.seen(&looks)? };
    let left = match seen {
        Some(seen) => Left::Seen(seen),
        None => Left::Whole(workload.outputs()?),
    };
    if scene.assignment.timing.is_some() {
        // Every buffer set once: what a lazy backend plans for one it may not have planned for another.
        let lazy = setup.implementation == Implementation::Fused && !platforms::of(setup.device).is_synchronous();
        let launches = match content {
            Content::Gate => 0,
            // Each may take long, and there is nothing in this process that would have to settle.
            Content::Timed if workload.is_a_process() => 0,
            Content::Timed if lazy => PRIMING.max(setup.sets),
            Content::Timed => PRIMING,
        };
        for _ in 0..launches {
            workload.launch()?;
        }
        workload.settle()?;
        // On top of what the workload before it took.
        let before = record.preparation.prime_ns.unwrap_or(0);
        let nanos = before + start.elapsed().as_nanos() as u64;
        let events = record.preparation.tuning.map_or(0, |tuning| tuning.events);
        let events = events + scene.context.silence.tuned() - tuned;
        let tuning = (events > 0).then_some(Tuning { nanos, events });
        record.preparation = Preparation { prime_ns: Some(nanos), tuning, ..Preparation::default() };
    }
    Ok(left)
}
