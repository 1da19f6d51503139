//! Part of a record that comparisons need.

use calorimeter_case::record::{Accuracy, Estimate, Record, Status};
use calorimeter_case::{Case, CaseId, Device, Implementation, Name, TuningLevel};
use calorimeter_sinks::RecordPart;
use serde::Deserialize;

/// Status, time and execution of a case.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ComparedRecord {
    /// Id of the case.
    pub id: CaseId,
    /// Recipe.
    pub recipe: Name,
    /// Sparsity, if any.
    #[serde(default)]
    pub sparsity: Option<Name>,
    /// Implementation.
    #[serde(deserialize_with = "Implementation::read_recorded")]
    pub implementation: Implementation,
    /// Device.
    pub device: Device,
    /// Status.
    pub status: Status,
    /// Reason for the status.
    #[serde(default)]
    pub reason: Option<String>,
    /// Stopwatch that the times were read from.
    #[serde(default)]
    pub stopwatch: Option<String>,
    /// Kernel that ran, if known.
    #[serde(default)]
    pub kernel: Option<String>,
    /// Autotune decisions.
    #[serde(default)]
    pub autotune: Vec<String>,
    /// Autotune level, if sizes were not tuned separately.
    #[serde(default)]
    pub autotune_level: Option<TuningLevel>,
    /// Time of one launch in nanoseconds.
    #[serde(default)]
    pub time_ns: Option<Estimate>,
    /// Time in each process, if there were several.
    #[serde(default)]
    pub of_processes_ns: Vec<f64>,
    /// Share of windows in which the device was throttled.
    #[serde(default)]
    pub held_back: Option<f64>,
    /// Accuracy of the output.
    #[serde(default)]
    pub accuracy: Option<Box<Accuracy>>,
}

impl ComparedRecord {
    /// True if the case succeeded.
    pub fn is_ok(&self) -> bool {
        self.status == Status::Ok
    }

    /// True if the case is neither quantized nor sparse.
    pub fn is_baseline(&self) -> bool {
        self.recipe == Case::BASELINE && self.sparsity.is_none()
    }
}

impl RecordPart for ComparedRecord {
    fn id(&self) -> &CaseId {
        &self.id
    }
}

impl From<&Record> for ComparedRecord {
    fn from(Record { case, outcome, execution, time, accuracy, .. }: &Record) -> Self {
        Self {
            id: case.id.clone(),
            recipe: case.recipe,
            sparsity: case.sparsity,
            implementation: case.implementation,
            device: case.device,
            status: outcome.status,
            reason: outcome.reason.clone(),
            stopwatch: execution.stopwatch.clone(),
            kernel: execution.kernel.clone(),
            autotune: execution.autotune.clone(),
            autotune_level: execution.autotune_level,
            time_ns: time.time_ns,
            of_processes_ns: time.of_processes_ns.clone(),
            held_back: time.held_back,
            accuracy: accuracy.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_lines_and_records_convert_alike() {
        let mut record = Record::without_time(Case::default(), Status::Failed, "why");
        let bare = Record::new(Case::default(), Status::Ok);
        record.case.sparsity = Some("semi-sparse".parse().unwrap());
        record.execution.stopwatch = Some("cupti".into());
        record.execution.kernel = Some("gemm".into());
        record.execution.autotune = vec!["first".into()];
        record.execution.autotune_level = Some(TuningLevel::Quick);
        record.time.time_ns = Some(Estimate { median: 2.0, lo: Some(1.0), hi: None });
        record.time.of_processes_ns = vec![1.0, 3.0];
        record.time.held_back = Some(0.5);
        record.accuracy = Some(Box::new(Accuracy { rel_l2: Some(0.0), ..Accuracy::default() }));
        for record in [record, bare] {
            let line = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<ComparedRecord>(&line).unwrap(), ComparedRecord::from(&record));
        }
    }
}
