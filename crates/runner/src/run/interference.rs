//! Interference probe: one case in isolation, and with all other devices busy.

use super::device_thread::DeviceCommand;
use crate::worker::{AssignedCase, Assignment, AssignmentPurpose};
use calorimeter_case::record::Estimate;
use calorimeter_case::{Device, Record, Verdict, Warning};
use calorimeter_timing::Options;
use std::collections::BTreeMap;
use std::time::Duration;

/// Interference measured on each device.
#[derive(Default)]
pub(super) struct InterferenceProbe(BTreeMap<Device, DeviceInterference>);

struct DeviceInterference {
    margin: f64,
    isolated: Option<Record>,
    concurrent: Option<Record>,
}

/// Ratio of the concurrent to the isolated time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SlowdownFactor {
    factor: f64,
    lo: f64,
    hi: f64,
}

impl InterferenceProbe {
    /// Adds the probe record of a device, isolated or concurrent. Differences within the margin do not count.
    pub(super) fn add(&mut self, device: Device, margin: f64, record: Option<Record>, concurrent: bool) {
        let probe = self.0.entry(device).or_insert(DeviceInterference { margin, isolated: None, concurrent: None });
        *(if concurrent { &mut probe.concurrent } else { &mut probe.isolated }) = record;
    }

    /// Adds warnings to a record that was measured concurrently.
    pub(super) fn warn(&self, record: &mut Record) {
        if !record.is_ok() || record.time.time_ns.is_none() {
            return;
        }
        let device = record.case.device;
        if let Some(factor) = self.0.get(&device).and_then(DeviceInterference::significant_factor) {
            record.warnings.push(Warning::busy_devices(device, format!("{:.3}", factor.factor)));
        }
        if record.time.launch_bound == Some(true) {
            record.warnings.push(Warning::launch_bound());
        }
    }

    /// Notes, one per device.
    pub(super) fn notes(&self) -> Vec<String> {
        self.0.iter().map(|(device, probe)| format!("{device}: {}", probe.note())).collect()
    }
}

impl DeviceInterference {
    fn factor(&self) -> Option<SlowdownFactor> {
        let time = |record: &Option<Record>| record.as_ref()?.time.time_ns;
        let (isolated, concurrent) = (time(&self.isolated)?, time(&self.concurrent)?);
        let ends = |time: Estimate| Some((time.lo?, time.hi?));
        let ((min, max), (lo, hi)) = (ends(isolated)?, ends(concurrent)?);
        Some(SlowdownFactor { factor: concurrent.median / isolated.median, lo: lo / max, hi: hi / min })
    }

    /// Slowdown factor, if its interval is outside the margin.
    fn significant_factor(&self) -> Option<SlowdownFactor> {
        let is_certain = |factor: &SlowdownFactor| {
            !matches!(
                Verdict::from_interval(Some(factor.lo), Some(factor.hi), self.margin),
                Verdict::Same | Verdict::Unclear
            )
        };
        self.factor().filter(is_certain)
    }

    fn note(&self) -> String {
        let Some(SlowdownFactor { factor, lo, hi }) = self.factor() else {
            let why = [&self.isolated, &self.concurrent].into_iter().find_map(|record| {
                let outcome = &record.as_ref()?.outcome;
                outcome.reason.as_ref().map(|reason| format!("{}, {reason}", outcome.status))
            });
            let why = why.unwrap_or_else(|| "no time".into());
            return format!("interference from other devices unknown: the probe produced no time: {why}");
        };
        let figures = format!("took {factor:.3} times as long ({lo:.3} to {hi:.3}) while other devices were busy");
        let consequence = match self.significant_factor() {
            Some(_) => "; concurrent measurements carry a warning",
            None => "",
        };
        let case = self.isolated.as_ref().map_or("the probe", |record| &*record.case.id);
        format!("{case} {figures}{consequence}")
    }
}

/// Command for the interference probe: the first case of a group, without its baseline and with short time limits.
pub(super) fn probe_command(assignment: Assignment, timeout: Duration) -> Option<DeviceCommand> {
    let timing = assignment.purpose.timing()?.clone();
    let cases = vec![AssignedCase { baseline: None, kernels: None, ..assignment.cases.first()?.clone() }];
    let purpose = AssignmentPurpose::ProbeInterference(Options {
        min_time: timing.min_time.min(PROBE_TIME),
        max_time: timing.max_time.min(5 * PROBE_TIME),
        warm_up: timing.warm_up.min(PROBE_TIME),
        energy: false,
        ..timing
    });
    Some(DeviceCommand { assignment: Assignment { cases, purpose, ..assignment }, timeout })
}

/// Approximate duration of a probe.
const PROBE_TIME: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::{Case, Status};

    fn record(median: f64) -> Record {
        let case = Case { device: Device::Cuda(1), id: "a/case".into(), ..Case::default() };
        let mut record = Record::new(case, Status::Ok);
        record.time.time_ns = Some(Estimate { median, lo: Some(0.99 * median), hi: Some(1.01 * median) });
        record
    }

    fn interference(concurrent: Record) -> InterferenceProbe {
        let mut company = InterferenceProbe::default();
        company.add(Device::Cuda(1), 0.02, Some(record(100.0)), false);
        company.add(Device::Cuda(1), 0.02, Some(concurrent), true);
        company
    }

    #[test]
    fn interference_above_the_margin_is_flagged() {
        for (time, warnings) in [(100.0, 0), (103.0, 0), (110.0, 1), (90.0, 1)] {
            let company = interference(record(time));
            let mut measured = record(50.0);
            company.warn(&mut measured);
            assert_eq!(measured.warnings.len(), warnings, "{time}");
            let note = &company.notes()[0];
            let expected = format!("cuda:1: a/case took {:.3} times as long (", time / 100.0);
            assert!(note.starts_with(&expected), "{note}");
            assert_eq!(note.ends_with("carry a warning"), warnings > 0, "{note}");
        }
    }

    #[test]
    fn launch_bound_cases_are_flagged() {
        let company = interference(record(100.0));
        let mut bound = record(50.0);
        bound.time.launch_bound = Some(true);
        company.warn(&mut bound);
        assert_eq!(*bound.warnings, [Warning::launch_bound()]);
        let mut failed = Record::without_time(record(1.0).case, Status::Failed, "for a reason");
        company.warn(&mut failed);
        assert!(failed.warnings.is_empty());
    }

    #[test]
    fn failed_probe_reports_unknown_interference() {
        let company = interference(Record::without_time(record(1.0).case, Status::Crashed, "it was killed"));
        let expected = "the probe produced no time: crashed, it was killed";
        assert!(company.notes()[0].ends_with(expected), "{:?}", company.notes());
    }
}
