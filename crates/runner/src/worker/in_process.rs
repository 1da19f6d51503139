//! An executor without isolation, for programs that embed the runner and cannot start themselves again.

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

/// Measures in this process: a crash takes it along, a hang stays, and timeouts are not enforced.
///
/// burn's settings and CubeCL's are the program's, which can give them once: what it has not set when the first device is
/// opened, they read from files in the working directory and above it. Call [`calorimeter_zoo::backends::configure`] first
/// thing, as workers do.
#[derive(Default)]
pub struct InProcess {
    /// One for each device, by its identity: sensors, peaks and free memory are the device's.
    contexts: HashMap<String, Context>,
    poison: Option<String>,
}

impl InProcess {
    fn context(&mut self, identity: &str) -> &mut Context {
        self.contexts.entry(identity.to_owned()).or_insert_with(|| Context::new(None, None))
    }
}

/// Passes the first end of each case on, and remembers it.
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
        let mut ended = HashMap::new();
        loop {
            let left = remaining(assignment, &ended);
            if left.is_empty() || listener.interrupted() {
                return Ok(());
            }
            let rest = assignment.only(|id| left.contains(id));
            if let Some(reason) = &self.poison {
                let reason = format!("an earlier case spoilt this process: {reason}");
                for assigned in rest.cases.into_iter().filter(|assigned| !ended.contains_key(&assigned.case.id)) {
                    let record = Record::without_time(assigned.case, Status::Skipped, reason.clone());
                    listener.hear(Event::Ended(Box::new(record)));
                }
                return Ok(());
            }
            let context = self.context(&assignment.device.identity);
            let mut ends = FirstEnds { listener, ended: &mut ended };
            if let Err(Poisoned { case, reason }) = work(&rest, context, &mut ends) {
                let Some(spoilt) = rest.cases.into_iter().find(|assigned| assigned.case.id == case) else { continue };
                // One that was touched again as another one's baseline keeps its record, and is a baseline no more.
                if ended.insert(case, Status::Failed).is_none() {
                    let record = Record::without_time(spoilt.case, Status::Failed, reason.clone());
                    listener.hear(Event::Ended(Box::new(record)));
                }
                // What panicked on this thread was unwound in order; what panicked on a device's was not.
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
