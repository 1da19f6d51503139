//! The first passes, in which kernels are compiled and tuned.

use super::state::Opened;
use super::tuning::Decisions;
use crate::platforms;
use crate::worker::event::Stage;
use crate::worker::protocol::AssignedCase;
use crate::worker::scene::Scene;
use calorimeter_case::record::{Preparation, Tuning};
use calorimeter_case::{Case, Implementation};
use calorimeter_zoo::{Output, Task, ZooError};
use std::time::Instant;

/// Launches after the first, so that lazy backends have settled on how they run.
const PRIMING: u32 = 3;

/// What the first passes gave.
pub struct Primed {
    /// The outputs of the very first.
    pub outputs: Vec<Output>,
    decisions: Option<Decisions>,
}

/// Runs a pass whose outputs are read, and where the case is to be timed a few more.
pub fn prime(assigned: &AssignedCase, opened: &mut Opened, scene: &mut Scene<'_>) -> Result<Primed, ZooError> {
    let Opened { workload, setup, record, .. } = opened;
    scene.listener.touch(&assigned.case.id, Stage::Tune);
    let decisions = scene.context.tuning.clone().map(Decisions::before);
    let (start, tuned) = (Instant::now(), scene.context.silence.tuned());
    let outputs = workload.outputs()?;
    if scene.assignment.timing.is_some() {
        // Every buffer set once: what a lazy backend plans for one it may not have planned for another.
        let lazy = setup.implementation == Implementation::Fused && !platforms::of(setup.device).is_synchronous();
        for _ in 0..if lazy { PRIMING.max(setup.sets) } else { PRIMING } {
            workload.launch()?;
        }
        workload.settle()?;
        let nanos = start.elapsed().as_nanos() as u64;
        let events = scene.context.silence.tuned() - tuned;
        let tuning = (events > 0).then_some(Tuning { nanos, events });
        record.preparation = Preparation { prime_ns: Some(nanos), tuning, ..Preparation::default() };
    }
    Ok(Primed { outputs, decisions })
}

impl Primed {
    /// What the autotuner decided for the case.
    pub fn decisions(self, case: &Case, task: &Task) -> Vec<String> {
        let known = self.decisions.map(|decisions| decisions.after(case, &task.products(), case.implementation));
        known.unwrap_or_default()
    }
}
