//! An executor without isolation, for programs that embed the runner and cannot start themselves again.

use super::bench::{Context, Hear, Poisoned, work};
use super::protocol::{Assignment, Seen, Stage};
use super::subprocess::remaining;
use super::{Executor, Watch, WorkerError};
use crate::devices::DiscoveredDevice;
use calorimeter_sinks::{Record, Status};
use std::collections::HashMap;
use std::time::Duration;

/// Measures in this process: a crash takes it along, a hang stays, and timeouts are not enforced.
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

/// Hears for a watch, and knows how the cases ended that have their record.
struct Hearing<'a> {
    watch: &'a mut dyn Watch,
    positions: &'a [usize],
    ended: &'a mut [Option<Status>],
}

impl Hear for Hearing<'_> {
    fn touch(&mut self, case: usize, stage: Stage) {
        self.watch.touch(self.positions[case], stage);
    }

    fn record(&mut self, case: usize, record: Record) {
        let case = self.positions[case];
        if self.ended[case].is_none() {
            self.ended[case] = Some(record.outcome.status);
            self.watch.record(case, record);
        }
    }

    fn seen(&mut self, case: usize, seen: Seen) {
        self.watch.seen(self.positions[case], seen);
    }

    fn interrupted(&self) -> bool {
        self.watch.interrupted()
    }
}

impl Executor for InProcess {
    fn run(
        &mut self,
        assignment: &Assignment,
        _: &DiscoveredDevice,
        _: Duration,
        watch: &mut dyn Watch,
    ) -> Result<(), WorkerError> {
        let mut ended = vec![None; assignment.cases.len()];
        loop {
            let left = remaining(assignment, &ended);
            if left.is_empty() || watch.interrupted() {
                return Ok(());
            }
            if let Some(reason) = &self.poison {
                let reason = format!("an earlier case spoilt this process: {reason}");
                for case in left.into_iter().filter(|&case| ended[case].is_none()) {
                    let identity = assignment.cases[case].clone();
                    watch.record(case, Record::without_time(identity, Status::Skipped, reason.clone()));
                }
                return Ok(());
            }
            let mut hearing = Hearing { watch, positions: &left, ended: &mut ended };
            let context = self.context(&assignment.device.identity);
            if let Err(Poisoned { case, reason }) = work(&assignment.only(&left), context, &mut hearing) {
                let case = left[case];
                let identity = assignment.cases[case].clone();
                let record = Record::without_time(identity, Status::Failed, reason.clone());
                // One that was touched again as another one's baseline keeps its record, and is a baseline no more.
                if ended[case].replace(Status::Failed).is_none() {
                    watch.record(case, record);
                }
                // What panicked on this thread was unwound in order; what panicked on a device's was not.
                self.poison = super::panics::on_device().map(|_| reason);
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
