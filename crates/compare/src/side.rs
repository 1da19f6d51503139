//! Results of a case on one side, from one or several runs.

use super::compared_record::ComparedRecord;
use calorimeter_case::record::{Estimate, Status};
use calorimeter_timing::ValueWithInterval;
use serde::Serialize;

/// Results of a case on one side of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseSide {
    /// `ok` only if it is `ok` in every run.
    pub status: Status,
    /// Reason for the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Geometric mean over processes, or the time of a single run with its interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<Estimate>,
    /// Time in each process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of_processes_ns: Vec<f64>,
}

impl CaseSide {
    /// Combines the records of the case, one per run.
    pub(crate) fn from_records(records: &[&ComparedRecord]) -> Option<Self> {
        let worst = records.iter().find(|record| !record.is_ok()).or(records.first())?;
        let ok = records.iter().filter(|record| record.is_ok());
        let of_processes_ns: Vec<f64> = ok.flat_map(|record| process_times(record)).collect();
        let time_ns = match records {
            [record] => record.time_ns.filter(|_| record.is_ok()),
            _ => mean_time(&of_processes_ns),
        };
        Some(Self { status: worst.status, reason: worst.reason.clone(), time_ns, of_processes_ns })
    }

    /// Time with its interval, if there is one.
    pub(crate) fn figure(&self) -> Option<ValueWithInterval> {
        let Estimate { median, lo, hi } = self.time_ns?;
        Some(ValueWithInterval { center: median, lo: lo?, hi: hi? })
    }

    /// True if more than one process measured the case.
    pub(crate) fn is_repeated(&self) -> bool {
        self.of_processes_ns.len() > 1
    }
}

/// Times of the processes of one run.
fn process_times(record: &ComparedRecord) -> Vec<f64> {
    if record.of_processes_ns.len() > 1 {
        return record.of_processes_ns.clone();
    }
    record.time_ns.iter().map(|time| time.median).collect()
}

/// Geometric mean of the times.
fn mean_time(found: &[f64]) -> Option<Estimate> {
    let median = calorimeter_timing::geometric_mean(found.iter().copied())?;
    Some(Estimate { median, lo: None, hi: None })
}
