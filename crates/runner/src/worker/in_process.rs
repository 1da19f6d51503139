//! An executor without isolation, for programs that embed the runner and cannot start themselves again.

use super::bench::{Context, Hear, Poisoned, work};
use super::protocol::{Assignment, Seen, Stage};
use super::{Executor, Watch, WorkerError};
use crate::devices::Found;
use calorimeter_sinks::{Record, Status};
use std::time::Duration;

/// Measures in this process: a crash takes it along, a hang stays, and timeouts are not enforced.
pub struct InProcess {
    context: Context,
    poison: Option<String>,
}

impl Default for InProcess {
    fn default() -> Self {
        Self { context: Context::new(None, None), poison: None }
    }
}

/// Hears for a watch, and knows which cases have their record.
struct Hearing<'a> {
    watch: &'a mut dyn Watch,
    positions: &'a [usize],
    done: &'a mut [bool],
}

impl Hear for Hearing<'_> {
    fn touch(&mut self, case: usize, stage: Stage) {
        self.watch.touch(self.positions[case], stage);
    }

    fn record(&mut self, case: usize, record: Record) {
        self.done[self.positions[case]] = true;
        self.watch.record(self.positions[case], record);
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
        _: &Found,
        _: Duration,
        watch: &mut dyn Watch,
    ) -> Result<(), WorkerError> {
        let mut done = vec![false; assignment.cases.len()];
        loop {
            let left: Vec<usize> = (0..done.len()).filter(|&case| !done[case]).collect();
            if left.is_empty() || watch.interrupted() {
                return Ok(());
            }
            if let Some(reason) = &self.poison {
                let reason = format!("an earlier case spoilt this process: {reason}");
                for case in left {
                    let identity = assignment.cases[case].clone();
                    watch.record(
                        case,
                        Record { reason: Some(reason.clone()), ..Record::new(identity, Status::Skipped) },
                    );
                }
                return Ok(());
            }
            let mut hearing = Hearing { watch, positions: &left, done: &mut done };
            if let Err(Poisoned { case, reason }) = work(&assignment.only(&left), &mut self.context, &mut hearing) {
                let case = left[case];
                done[case] = true;
                let identity = assignment.cases[case].clone();
                watch.record(case, Record { reason: Some(reason.clone()), ..Record::new(identity, Status::Failed) });
                // What panicked on this thread was unwound in order; what panicked on a device's was not.
                self.poison = super::panics::on_device().map(|_| reason);
            }
        }
    }
}
