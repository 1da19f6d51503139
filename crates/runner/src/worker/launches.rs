//! Repeated measurement of every case in several processes.

use super::together::of_processes;
use super::{Assignment, Event, Executor, Listener, Subprocess, WorkerError};
use crate::devices::DiscoveredDevice;
use calorimeter_case::{CaseId, Record};
use std::collections::HashMap;
use std::time::Duration;

/// Executor that runs each assignment in several fresh worker processes and combines their records per case. Memory
/// layout and tuned kernels differ between processes.
pub struct Launches {
    workers: Subprocess,
    times: u32,
}

impl Launches {
    /// Creates an executor with the given number of processes per case.
    pub fn new(workers: Subprocess, times: u32) -> Self {
        Self { workers, times: times.max(1) }
    }
}

impl Executor for Launches {
    fn run(
        &mut self,
        assignment: &Assignment,
        device: &DiscoveredDevice,
        timeout: Duration,
        listener: &mut dyn Listener,
    ) -> Result<(), WorkerError> {
        if self.times == 1 || assignment.timing.is_none() {
            return self.workers.run(assignment, device, timeout, listener);
        }
        let mut found: HashMap<CaseId, Vec<Record>> = HashMap::new();
        for _ in 0..self.times {
            self.workers.renew();
            // A case that failed in one process is not repeated in the next.
            let well = |id: &CaseId| found.get(id).is_none_or(|records| records.iter().all(Record::is_ok));
            // A prefetch would be lost with its process.
            let rest = Assignment { next: None, ..assignment.only(well) };
            self.workers.run(&rest, device, timeout, &mut Gather { found: &mut found, listener })?;
            if listener.interrupted() {
                return Ok(());
            }
        }
        for assigned in &assignment.cases {
            if let Some(record) = found.remove(&assigned.case.id).and_then(of_processes) {
                listener.hear(Event::Ended(Box::new(record)));
            }
        }
        Ok(())
    }

    fn another(&self, devices: usize) -> Option<Box<dyn Executor + Send>> {
        Some(Box::new(Self::new(self.workers.sharing(devices), self.times)))
    }

    fn looker(&self) -> Option<Box<dyn Executor>> {
        self.workers.looker()
    }
}

/// Collects the records of all processes; forwards other events.
struct Gather<'a> {
    found: &'a mut HashMap<CaseId, Vec<Record>>,
    listener: &'a mut dyn Listener,
}

impl Listener for Gather<'_> {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Ended(record) => self.found.entry(record.case.id.clone()).or_default().push(*record),
            other => self.listener.hear(other),
        }
    }

    fn interrupted(&self) -> bool {
        self.listener.interrupted()
    }
}
