//! What one side says of a case, in one run or in several.

use super::measured::Measured;
use calorimeter_case::record::{Estimate, Status};
use calorimeter_timing::Figure;
use serde::Serialize;

/// What one side says of a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// `ok` where every run has it so.
    pub status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The middle of what the processes found, with the interval of the run where there is but one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<Estimate>,
    /// What each process found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of_processes_ns: Vec<f64>,
}

impl Side {
    /// From the records of the case, one of each run that has it.
    pub fn of(records: &[&Measured]) -> Option<Self> {
        let worst = records.iter().find(|record| !record.is_ok()).or(records.first())?;
        let ok = records.iter().filter(|record| record.is_ok());
        let of_processes_ns: Vec<f64> = ok.flat_map(|record| processes(record)).collect();
        let time_ns = match records {
            [record] => record.time_ns.filter(|_| record.is_ok()),
            _ => middle(&of_processes_ns),
        };
        Some(Self { status: worst.status, reason: worst.reason.clone(), time_ns, of_processes_ns })
    }

    /// Its time with the interval, where there is one.
    pub fn figure(&self) -> Option<Figure> {
        let Estimate { median, lo, hi } = self.time_ns?;
        Some(Figure { middle: median, lo: lo?, hi: hi? })
    }

    /// Whether more than one process measured it.
    pub fn is_repeated(&self) -> bool {
        self.of_processes_ns.len() > 1
    }
}

/// What each process of a run found.
fn processes(record: &Measured) -> Vec<f64> {
    if record.of_processes_ns.len() > 1 {
        return record.of_processes_ns.clone();
    }
    record.time_ns.iter().map(|time| time.median).collect()
}

/// The geometric mean of what processes found.
fn middle(found: &[f64]) -> Option<Estimate> {
    let median = calorimeter_timing::geometric_mean(found.iter().copied())?;
    Some(Estimate { median, lo: None, hi: None })
}
