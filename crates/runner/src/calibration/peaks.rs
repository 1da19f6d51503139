//! The highest rates of a calibration: by its operations, and by the probes that every run measures first.

use super::numbers::Numbers;
use super::parts::Part;
use super::purpose::CalibrationRecord;
use calorimeter_case::{DeviceKind, Dtype};
use calorimeter_sinks::{Record, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The highest rate of one kind. Nothing is ever clamped: what is above a stated peak says that the statement is wrong.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Peak {
    /// `GB/s`, or `GFLOP/s`.
    pub unit: String,
    /// The higher of the next two.
    pub measured: f64,
    /// The key of the operation that gave it, or `probe`.
    pub by: String,
    /// The best of the operations.
    pub by_operations: Option<f64>,
    /// The best of the probes: copies, reads and products without a framework.
    pub by_probes: Option<f64>,
    /// What the command line said.
    pub stated: Option<f64>,
    /// Measured and stated compared, in words.
    pub finding: Option<String>,
}

/// The name of memory among the peaks; products have the name of their numbers.
pub const MEMORY: &str = "memory";

/// What the command line says of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stated {
    /// Of products in f32, in 10⁹ operations per second.
    pub gflops: Option<f64>,
    /// Of memory, in 10⁹ bytes per second.
    pub gbps: Option<f64>,
}

/// The peaks that records show.
pub fn peaks(records: &[CalibrationRecord<'_>], cache_bytes: Option<u64>, stated: Stated) -> BTreeMap<String, Peak> {
    let mut peaks: BTreeMap<String, Peak> = BTreeMap::new();
    let mut note = |kind: &str, rate: Option<f64>, by: Option<String>| {
        let Some(rate) = rate else { return };
        let peak = peaks.entry(kind.to_owned()).or_insert_with(|| Peak {
            unit: if kind == MEMORY { "GB/s" } else { "GFLOP/s" }.into(),
            ..Peak::default()
        });
        let side = if by.is_some() { &mut peak.by_operations } else { &mut peak.by_probes };
        *side = Some(side.map_or(rate, |known| known.max(rate)));
        if rate > peak.measured {
            (peak.measured, peak.by) = (rate, by.unwrap_or_else(|| "probe".into()));
        }
    };
    for &CalibrationRecord { purpose, record } in records.iter().filter(|one| one.record.outcome.status == Status::Ok) {
        let from_memory = from_memory(record, cache_bytes);
        if purpose.part() == Some(Part::Stream) && from_memory {
            note(MEMORY, record.rates.gbps, Some(key(record)));
        }
        if purpose.part() == Some(Part::Blas) {
            note(&Numbers::from(record).to_string(), record.rates.tflops.map(|rate| 1e3 * rate), Some(key(record)));
        }
        let Some(roof) = &record.rates.roofline else { continue };
        if from_memory {
            note(MEMORY, roof.peak_gbps, None);
        }
        // On CUDA the roof of f32 may be that of TF32.
        if (record.case.element, record.case.device.kind()) != (Dtype::F32.into(), DeviceKind::Cuda) {
            // Journals of early versions have one peak.
            let highest = roof.burst_tflops.or(roof.peak_tflops);
            note(&record.case.element.to_string(), highest.map(|rate| 1e3 * rate), None);
        }
    }
    for (kind, stated) in [(MEMORY.to_owned(), stated.gbps), (Numbers::F32.to_string(), stated.gflops)] {
        if let (Some(peak), Some(stated)) = (peaks.get_mut(&kind), stated) {
            peak.stated = Some(stated);
            peak.finding = Some(finding(peak.measured, stated));
        }
    }
    peaks
}

fn finding(measured: f64, stated: f64) -> String {
    if measured > stated {
        return format!("the stated peak is wrong: what was measured is {:.2} times as much", measured / stated);
    }
    format!("{:.1} % of the stated peak was reached", 100.0 * measured / stated)
}

/// Where a record stands in a profile: the same in every run, whatever was measured.
pub fn key(record: &Record) -> String {
    let case = &record.case;
    format!("{}/{}/{}/{}/{}", case.workload, case.implementation, case.element, case.shape, case.regime)
}

/// Whether operands came from memory: from buffers that together exceed the last cache, or four times as large as it.
pub fn from_memory(record: &Record, cache_bytes: Option<u64>) -> bool {
    let cold = record.case.regime.rotates();
    match (record.execution.rotation, cache_bytes) {
        (Some(rotation), _) => {
            let cache = rotation.cache_bytes.or(cache_bytes).unwrap_or(u64::MAX);
            u64::from(rotation.sets) * rotation.bytes >= cache
        }
        (None, Some(cache)) => record.case.bytes.is_some_and(|bytes| bytes >= 4 * cache),
        (None, None) => cold,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::calibration::purpose::with_purpose;
    use calorimeter_case::Device;
    use calorimeter_case::record::{Estimate, Roofline, Rotation, finite};
    use calorimeter_case::record::{Rates, Time};
    use calorimeter_sinks::Case;

    /// An ok record of a part, 1000 ns long.
    pub fn record(part: Part, workload: &str, flops: u64, bytes: u64) -> Record {
        let case = Case {
            id: format!("{part}/{workload}/{flops}/{bytes}").into(),
            name: part.to_string(),
            workload: workload.parse().unwrap(),
            shape: [("n", bytes)].into(),
            flops: Some(flops),
            bytes: Some(bytes),
            ..Case::default()
        };
        Record {
            time: Time {
                time_ns: Some(Estimate { median: 1000.0, lo: Some(990.0), hi: Some(1010.0) }),
                ..Time::default()
            },
            rates: Rates { tflops: finite(flops as f64 / 1e6), gbps: finite(bytes as f64 / 1e3), ..Rates::default() },
            ..Record::new(case, Status::Ok)
        }
    }

    #[test]
    fn a_measured_peak_above_the_stated_one_is_reported_and_never_clamped() {
        let records = [record(Part::Stream, "stream_add", 1, 90_000), record(Part::Blas, "matmul", 2_000_000, 10)];
        let found = peaks(&with_purpose(&records), None, Stated { gflops: Some(1000.0), gbps: Some(100.0) });
        let (memory, products) = (&found[MEMORY], &found["f32"]);
        assert_eq!((memory.measured, memory.finding.as_deref()), (90.0, Some("90.0 % of the stated peak was reached")));
        assert_eq!(products.measured, 2000.0);
        let wrong = "the stated peak is wrong: what was measured is 2.00 times as much";
        assert_eq!(products.finding.as_deref(), Some(wrong));
    }

    #[test]
    fn what_a_cache_held_is_no_peak_of_memory() {
        let mut cached = record(Part::Stream, "stream_copy", 0, 1000);
        cached.execution.rotation = Some(Rotation { sets: 2, bytes: 1000, cache_bytes: Some(2001) });
        assert!(peaks(&with_purpose(&[cached.clone()]), Some(2001), Stated::default()).is_empty());
        cached.execution.rotation = None;
        assert!(!from_memory(&cached, Some(2001)) && from_memory(&cached, Some(250)));
    }

    #[test]
    fn a_probe_that_is_faster_is_the_peak_and_tf32_is_a_kind_of_its_own() {
        let mut product = record(Part::Blas, "matmul", 2_000_000, 10);
        product.rates.roofline =
            Some(Box::new(Roofline { peak_tflops: Some(2.5), burst_tflops: Some(3.0), ..Roofline::default() }));
        let found = peaks(&with_purpose(&[product.clone()]), None, Stated::default());
        assert_eq!((found["f32"].measured, found["f32"].by.as_str()), (3000.0, "probe"));
        product.case.device = Device::Cuda(0);
        product.execution.tf32 = true;
        let found = peaks(&with_purpose(&[product]), None, Stated::default());
        assert_eq!((found["tf32"].by_operations, found.get("f32")), (Some(2000.0), None));
    }
}
