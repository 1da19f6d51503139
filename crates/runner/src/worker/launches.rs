//! Every case measured in several processes, one after another.

use super::{Assignment, Event, Executor, Listener, Subprocess, WorkerError};
use crate::devices::DiscoveredDevice;
use calorimeter_case::record::Estimate;
use calorimeter_case::{CaseId, Record};
use calorimeter_timing::{Across, Verdict};
use std::collections::HashMap;
use std::time::Duration;

/// Gives each assignment to so many workers in turn, every one a fresh process, and makes one record of theirs for each case:
/// what a process finds in its memory, and how its kernels were tuned, differs from one to the next.
pub struct Launches {
    workers: Subprocess,
    times: u32,
}

impl Launches {
    /// So many processes for every case.
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
            // What failed in one process is not tried in the next.
            let well = |id: &CaseId| found.get(id).is_none_or(|records| records.iter().all(Record::is_ok));
            let rest = assignment.only(well);
            self.workers.run(&rest, device, timeout, &mut Gather { found: &mut found, listener })?;
            if listener.interrupted() {
                return Ok(());
            }
        }
        for assigned in &assignment.cases {
            if let Some(record) = found.remove(&assigned.case.id).and_then(together) {
                listener.hear(Event::Ended(Box::new(record)));
            }
        }
        Ok(())
    }

    fn looker(&self) -> Option<Box<dyn Executor>> {
        self.workers.looker()
    }
}

/// Keeps the records of one process after another; everything else is passed on.
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

/// One record of those of several processes: the first that is no time, or that of the middle one, whose time, rates and
/// speed-up become those of all. The rest of it, such as windows and telemetry, stays that process's.
fn together(mut records: Vec<Record>) -> Option<Record> {
    if let Some(at) = records.iter().position(|record| !record.is_ok()) {
        return Some(records.swap_remove(at));
    }
    let time = |record: &Record| record.time.time_ns.map_or(f64::NAN, |time| time.median);
    let times: Vec<f64> = records.iter().map(time).collect();
    records.sort_by(|a, b| time(a).total_cmp(&time(b)));
    let ratios: Vec<f64> = records.iter().filter_map(|record| Some(record.speedup.as_ref()?.ratio)).collect();
    let converged = records.iter().all(|record| record.time.converged == Some(true));
    let mut warnings: Vec<String> = Vec::new();
    for warning in records.iter().flat_map(|record| &record.outcome.warnings) {
        if !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    let all = records.len();
    let mut record = records.swap_remove(all / 2);
    (record.outcome.warnings, record.time.converged) = (warnings, Some(converged));
    if let Some(across) = Across::of(&times) {
        let faster = time(&record) / across.mean;
        record.time.time_ns = Some(Estimate { median: across.mean, lo: Some(across.lo), hi: Some(across.hi) });
        record.time.of_processes_ns = times;
        for rate in [&mut record.rates.tflops, &mut record.rates.gbps].into_iter().flatten() {
            *rate *= faster;
        }
        if let Some(roof) = &mut record.rates.roofline {
            roof.percent *= faster;
            for percent in [&mut roof.compute_percent, &mut roof.memory_percent].into_iter().flatten() {
                *percent *= faster;
            }
        }
    }
    if ratios.len() == all {
        if let (Some(across), Some(speedup)) = (Across::of(&ratios), &mut record.speedup) {
            (speedup.ratio, speedup.lo, speedup.hi) = (across.mean, Some(across.lo), Some(across.hi));
            let margin = speedup.margin.unwrap_or_default();
            speedup.verdict = Verdict::of(speedup.lo, speedup.hi, margin);
            speedup.rounds_needed = None;
        }
    } else if !ratios.is_empty() {
        record.speedup = None;
        record.warn("it has no speed-up: not every process has one");
    }
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::record::Speedup;
    use calorimeter_case::{Case, Status};

    fn record(nanos: f64, ratio: f64) -> Record {
        let mut record = Record::new(Case::default(), Status::Ok);
        record.time.time_ns = Some(Estimate { median: nanos, lo: Some(nanos * 0.999), hi: Some(nanos * 1.001) });
        record.time.converged = Some(true);
        record.rates.gbps = Some(1e6 / nanos);
        record.speedup = Some(Speedup { ratio, margin: Some(0.02), verdict: Verdict::Faster, ..Speedup::default() });
        record
    }

    #[test]
    fn processes_that_disagree_have_an_interval_that_holds_them() {
        let record = together(vec![record(1040.0, 1.00), record(960.0, 1.08), record(1000.0, 1.04)]).unwrap();
        let time = record.time.time_ns.unwrap();
        assert!(
            (time.median - 1000.0).abs() < 2.0 && time.lo.unwrap() < 960.0 && time.hi.unwrap() > 1040.0,
            "{time:?}"
        );
        assert_eq!(record.time.of_processes_ns, [1040.0, 960.0, 1000.0]);
        assert!((record.rates.gbps.unwrap() - 1000.0).abs() < 2.0);
        let speedup = record.speedup.unwrap();
        assert!((speedup.ratio - 1.04).abs() < 0.01, "{speedup:?}");
        assert_eq!(speedup.verdict, Verdict::Unclear);
    }

    #[test]
    fn a_speed_up_that_one_process_lacks_is_none() {
        let mut without = record(1000.0, 1.0);
        without.speedup = None;
        for of in [vec![record(999.0, 1.0), record(1001.0, 1.0), without.clone()], vec![record(999.0, 1.0), without]] {
            let record = together(of).unwrap();
            assert_eq!((record.speedup, record.outcome.warnings.len()), (None, 1));
        }
    }

    #[test]
    fn one_process_in_which_a_case_fails_is_enough() {
        let mut failed = record(1000.0, 1.0);
        (failed.outcome.status, failed.outcome.reason) = (Status::Mismatch, Some("wrong".into()));
        let record = together(vec![record(1000.0, 1.0), failed]).unwrap();
        assert_eq!(record.outcome.status, Status::Mismatch);
    }
}
