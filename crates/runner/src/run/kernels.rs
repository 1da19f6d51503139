//! Kernels that no clock of ours sees: graphics APIs tell the time of launches alone.

use crate::devices::DiscoveredDevice;
use crate::platforms;
use crate::worker::{AssignedCase, Assignment, Event, Executor, Listener, SeenKernels, WorkerError};
use calorimeter_case::CaseId;
use std::collections::HashMap;
use std::time::Duration;

/// A second executor, made when it is first needed, whose workers time nothing and look at kernels.
#[derive(Default)]
pub struct Lookout(Option<Option<Box<dyn Executor>>>);

impl Lookout {
    /// Has the kernels of each case looked at, where some are wanted that its own worker cannot see.
    pub fn look(
        &mut self,
        assignment: &mut Assignment,
        device: &DiscoveredDevice,
        timeout: Duration,
        executor: &dyn Executor,
        listener: &mut dyn Listener,
    ) -> Result<(), WorkerError> {
        let wanted = |one: &AssignedCase| one.case.profiler || one.case.fusion.is_some();
        let unseen = platforms::of(device.device).hides_kernels();
        if !unseen || assignment.timing.is_none() || !assignment.cases.iter().any(wanted) {
            return Ok(());
        }
        let Some(looker) = self.0.get_or_insert_with(|| executor.looker()) else { return Ok(()) };
        let mut sight = Sight { seen: HashMap::new(), listener };
        looker.run(assignment, device, timeout, &mut sight)?;
        for one in &mut assignment.cases {
            one.kernels = sight.seen.remove(&one.case.id);
        }
        Ok(())
    }
}

/// Keeps what a worker sees of kernels; why it may have seen nothing is found again when the case is measured.
struct Sight<'a> {
    seen: HashMap<CaseId, SeenKernels>,
    listener: &'a mut dyn Listener,
}

impl Listener for Sight<'_> {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Touched { .. } => self.listener.hear(event),
            Event::Saw { case, kernels } if kernels.passes > 0 => {
                self.seen.insert(case, kernels);
            }
            _ => {}
        }
    }

    fn interrupted(&self) -> bool {
        self.listener.interrupted()
    }
}
