//! Executor without isolation, for programs that embed the runner and cannot start themselves again.

use super::context::WorkerContext;
use super::event::{EventFilter, WorkerEvent, WorkerListener};
use super::group::run_assignment;
use super::poison::PoisonedProcess;
use super::protocol::Assignment;
use super::remaining::remaining_cases;
use super::{Executor, WorkerError, panics};
use calorimeter_case::{Record, Status};
use calorimeter_probe::devices::DiscoveredDevice;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

/// Measures in this process: a crash ends the program, a hang blocks it, and timeouts are not enforced.
///
/// burn and CubeCL accept their settings once per process. Settings that are missing when the first device is opened
/// are read from files in the working directory and above. Call [`calorimeter_zoo::backends::configure`] first, as
/// workers do.
#[derive(Default)]
pub struct InProcess {
    /// Contexts by device identity, because sensors, peaks and free memory belong to the device.
    contexts: HashMap<String, WorkerContext>,
    poison: Option<String>,
}

impl InProcess {
    fn context(&mut self, identity: &str) -> &mut WorkerContext {
        self.contexts.entry(identity.to_owned()).or_insert_with(WorkerContext::new)
    }
}

impl Executor for InProcess {
    fn run(
        &mut self,
        assignment: &Assignment,
        _: &DiscoveredDevice,
        _: Duration,
        listener: &mut dyn WorkerListener,
    ) -> Result<(), WorkerError> {
        let mut finished = HashMap::new();
        loop {
            let pending = remaining_cases(assignment, &finished);
            if pending.is_empty() || listener.interrupted() {
                return Ok(());
            }
            let rest = assignment.filter_cases(|id| pending.contains(id));
            if let Some(reason) = &self.poison {
                let reason = format!("an earlier case left this process in an untrusted state: {reason}");
                for assigned in rest.cases.into_iter().filter(|assigned| !finished.contains_key(&assigned.case.id)) {
                    let record = Record::without_time(assigned.case, Status::Skipped, reason.clone());
                    listener.on_event(WorkerEvent::CaseFinished(Box::new(record)));
                }
                return Ok(());
            }
            let context = self.context(&assignment.device.identity);
            let mut first_results = EventFilter::new(listener, |event, listener| {
                if let Some((case, status)) = event.finished_case() {
                    let Entry::Vacant(first) = finished.entry(case.clone()) else { return };
                    first.insert(status);
                }
                listener.on_event(event);
            });
            if let Err(PoisonedProcess { case, reason, .. }) = run_assignment(&rest, context, &mut first_results) {
                let Some(poisoned) = rest.cases.into_iter().find(|assigned| assigned.case.id == case) else { continue };
                // A baseline that was measured again keeps its record, but no longer serves as a baseline.
                if finished.insert(case, Status::Failed).is_none() {
                    let record = Record::without_time(poisoned.case, Status::Failed, reason.clone());
                    listener.on_event(WorkerEvent::CaseFinished(Box::new(record)));
                }
                // A panic on this thread was unwound properly; one on a device thread was not.
                self.poison = panics::device_panic().map(|_| reason);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_do_not_share_peaks() {
        let mut executor = InProcess::default();
        executor.context("one").peaks_dir = Some("peaks of one".into());
        assert_eq!(executor.context("another").peaks_dir, None);
        assert!(executor.context("one").peaks_dir.is_some());
    }
}
