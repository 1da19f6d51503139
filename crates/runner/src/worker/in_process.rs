//! Executor without isolation, for programs that embed the runner and cannot start themselves again.

use super::context::Context;
use super::event::{Event, Listener};
use super::group::work;
use super::poison::Poisoned;
use super::protocol::Assignment;
use super::remaining::remaining;
use super::{Executor, WorkerError, panics};
use crate::devices::DiscoveredDevice;
use calorimeter_case::{CaseId, Record, Status};
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
    contexts: HashMap<String, Context>,
    poison: Option<String>,
}

impl InProcess {
    fn context(&mut self, identity: &str) -> &mut Context {
        self.contexts.entry(identity.to_owned()).or_insert_with(|| Context::new(None, None))
    }
}

/// Forwards the first result of each case and remembers its status.
struct FirstEnds<'a> {
    listener: &'a mut dyn Listener,
    ended: &'a mut HashMap<CaseId, Status>,
}

impl Listener for FirstEnds<'_> {
    fn hear(&mut self, event: Event) {
        if let Event::Ended(record) = &event {
            let Entry::Vacant(first) = self.ended.entry(record.case.id.clone()) else { return };
            first.insert(record.outcome.status);
        }
        self.listener.hear(event);
    }

    fn interrupted(&self) -> bool {
        self.listener.interrupted()
    }
}

impl Executor for InProcess {
    fn run(
        &mut self,
        assignment: &Assignment,
        _: &DiscoveredDevice,
        _: Duration,
        listener: &mut dyn Listener,
    ) -> Result<(), WorkerError> {
        let mut finished = HashMap::new();
        loop {
            let pending = remaining(assignment, &finished);
            if pending.is_empty() || listener.interrupted() {
                return Ok(());
            }
            let rest = assignment.only(|id| pending.contains(id));
            if let Some(reason) = &self.poison {
                let reason = format!("an earlier case left this process in an untrusted state: {reason}");
                for assigned in rest.cases.into_iter().filter(|assigned| !finished.contains_key(&assigned.case.id)) {
                    let record = Record::without_time(assigned.case, Status::Skipped, reason.clone());
                    listener.hear(Event::Ended(Box::new(record)));
                }
                return Ok(());
            }
            let context = self.context(&assignment.device.identity);
            let mut ends = FirstEnds { listener, ended: &mut finished };
            if let Err(Poisoned { case, reason }) = work(&rest, context, &mut ends) {
                let Some(poisoned) = rest.cases.into_iter().find(|assigned| assigned.case.id == case) else { continue };
                // A baseline that was measured again keeps its record, but no longer serves as a baseline.
                if finished.insert(case, Status::Failed).is_none() {
                    let record = Record::without_time(poisoned.case, Status::Failed, reason.clone());
                    listener.hear(Event::Ended(Box::new(record)));
                }
                // A panic on this thread was unwound properly; one on a device thread was not.
                self.poison = panics::on_device().map(|_| reason);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_one_device_is_not_said_of_another() {
        let mut executor = InProcess::default();
        executor.context("one").kept_peaks = Some("peaks of one".into());
        assert_eq!(executor.context("another").kept_peaks, None);
        assert!(executor.context("one").kept_peaks.is_some());
    }
}
