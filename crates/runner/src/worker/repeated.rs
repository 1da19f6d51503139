//! Repeated measurement of every case in several processes.

use super::combine::combine_processes;
use super::{Assignment, EventFilter, Executor, Subprocess, WorkerError, WorkerEvent, WorkerListener};
use calorimeter_case::{CaseId, Record};
use calorimeter_probe::devices::DiscoveredDevice;
use std::collections::HashMap;
use std::time::Duration;

/// Executor that runs each assignment in several fresh worker processes and combines their records per case. Memory
/// layout and tuned kernels differ between processes.
pub struct RepeatedExecutor {
    workers: Subprocess,
    processes: u32,
}

impl RepeatedExecutor {
    /// Creates an executor with the given number of processes per case.
    pub fn new(workers: Subprocess, times: u32) -> Self {
        Self { workers, processes: times.max(1) }
    }
}

impl Executor for RepeatedExecutor {
    fn run(
        &mut self,
        assignment: &Assignment,
        device: &DiscoveredDevice,
        timeout: Duration,
        listener: &mut dyn WorkerListener,
    ) -> Result<(), WorkerError> {
        if self.processes == 1 || !assignment.purpose.is_timed() {
            return self.workers.run(assignment, device, timeout, listener);
        }
        let mut found: HashMap<CaseId, Vec<Record>> = HashMap::new();
        for _ in 0..self.processes {
            self.workers.restart_worker();
            // A case that failed in one process is not repeated in the next.
            let well = |id: &CaseId| found.get(id).is_none_or(|records| records.iter().all(Record::is_ok));
            // A prefetch would be lost with its process.
            let rest = Assignment { next: Vec::new(), ..assignment.filter_cases(well) };
            let mut collector = EventFilter::new(listener, |event, listener| match event {
                WorkerEvent::CaseFinished(record) => found.entry(record.case.id.clone()).or_default().push(*record),
                other => listener.on_event(other),
            });
            self.workers.run(&rest, device, timeout, &mut collector)?;
            if listener.interrupted() {
                return Ok(());
            }
        }
        for assigned in &assignment.cases {
            if let Some(record) = found.remove(&assigned.case.id).and_then(combine_processes) {
                listener.on_event(WorkerEvent::CaseFinished(Box::new(record)));
            }
        }
        Ok(())
    }

    fn for_concurrent_devices(&self, devices: usize) -> Option<Box<dyn Executor + Send>> {
        Some(Box::new(Self::new(self.workers.sharing_threads(devices), self.processes)))
    }

    fn kernel_tracer(&self) -> Option<Box<dyn Executor>> {
        self.workers.kernel_tracer()
    }
}
