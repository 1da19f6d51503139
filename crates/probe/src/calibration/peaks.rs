//! Peaks of a calibration, from its operations and from the probes of every run.

use super::compute_precision::ComputePrecision;
use super::part::CalibrationPart;
use super::purpose::CalibrationRecord;
use calorimeter_case::{DeviceKind, Dtype};
use calorimeter_sinks::{Record, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Highest measured rate of memory or of a precision. Not clamped: a measurement above a stated peak disproves the
/// statement.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CalibratedPeak {
    /// `GB/s` or `GFLOP/s`.
    pub unit: String,
    /// Maximum of `by_operations` and `by_probes`.
    pub measured: f64,
    /// Key of the fastest operation, or `probe`.
    pub by: String,
    /// Highest rate of the operations.
    pub by_operations: Option<f64>,
    /// Highest rate of the probes: copies, reads and matmuls without a framework.
    pub by_probes: Option<f64>,
    /// Peak stated on the command line.
    pub stated: Option<f64>,
    /// Comparison of measured and stated peak.
    pub finding: Option<String>,
}

/// Key of memory in the map of peaks; matmul peaks are keyed by precision.
pub(super) const MEMORY: &str = "memory";

/// Peaks stated on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StatedPeaks {
    /// f32 matmul in GFLOP/s.
    pub gflops: Option<f64>,
    /// Memory bandwidth in GB/s.
    pub gbps: Option<f64>,
}

/// Computes the peaks from records.
pub(super) fn peaks(
    records: &[CalibrationRecord<'_>],
    cache_bytes: Option<u64>,
    stated: StatedPeaks,
) -> BTreeMap<String, CalibratedPeak> {
    let mut peaks: BTreeMap<String, CalibratedPeak> = BTreeMap::new();
    let mut add = |kind: &str, rate: Option<f64>, by: Option<String>| {
        let Some(rate) = rate else { return };
        let peak = peaks.entry(kind.to_owned()).or_insert_with(|| CalibratedPeak {
            unit: if kind == MEMORY { "GB/s" } else { "GFLOP/s" }.into(),
            ..CalibratedPeak::default()
        });
        let side = if by.is_some() { &mut peak.by_operations } else { &mut peak.by_probes };
        *side = Some(side.map_or(rate, |known| known.max(rate)));
        if rate > peak.measured {
            (peak.measured, peak.by) = (rate, by.unwrap_or_else(|| "probe".into()));
        }
    };
    for &CalibrationRecord { purpose, record } in records.iter().filter(|one| one.record.outcome.status == Status::Ok) {
        let from_memory = reads_from_memory(record, cache_bytes);
        if purpose.part() == Some(CalibrationPart::Stream) && from_memory {
            add(MEMORY, record.rates.gbps, Some(profile_key(record)));
        }
        if purpose.part() == Some(CalibrationPart::Blas) {
            add(
                &ComputePrecision::from(record).to_string(),
                record.rates.tflops.map(|rate| 1e3 * rate),
                Some(profile_key(record)),
            );
        }
        let Some(roof) = &record.rates.roofline else { continue };
        if from_memory {
            add(MEMORY, roof.peak_gbps, None);
        }
        // On CUDA the f32 roofline may use TF32.
        if (record.case.element, record.case.device.kind()) != (Dtype::F32.into(), DeviceKind::Cuda) {
            // Early journals have a single compute peak.
            let highest = roof.burst_tflops.or(roof.peak_tflops);
            add(&record.case.element.to_string(), highest.map(|rate| 1e3 * rate), None);
        }
    }
    for (kind, stated) in [(MEMORY.to_owned(), stated.gbps), (ComputePrecision::F32.to_string(), stated.gflops)] {
        if let (Some(peak), Some(stated)) = (peaks.get_mut(&kind), stated) {
            peak.stated = Some(stated);
            peak.finding = Some(finding(peak.measured, stated));
        }
    }
    peaks
}

fn finding(measured: f64, stated: f64) -> String {
    if measured > stated {
        return format!("the stated peak is too low: the measured one is {:.2} times as high", measured / stated);
    }
    format!("{:.1} % of the stated peak", 100.0 * measured / stated)
}

/// Key of a record in a profile; independent of measured values.
pub(super) fn profile_key(record: &Record) -> String {
    let case = &record.case;
    format!("{}/{}/{}/{}/{}", case.workload, case.implementation, case.element, case.shape, case.regime)
}

/// True if operands came from memory: the rotated buffer sets exceed the last-level cache, or the case moves at least
/// four times its size.
pub(super) fn reads_from_memory(record: &Record, cache_bytes: Option<u64>) -> bool {
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
pub(super) mod tests {
    use super::*;
    use crate::calibration::purpose::with_purpose;
    use calorimeter_case::Device;
    use calorimeter_case::record::{Estimate, Roofline, Rotation, finite};
    use calorimeter_case::record::{Rates, Time};
    use calorimeter_sinks::Case;

    /// Returns an `ok` record of a part, with a time of 1000 ns.
    pub(crate) fn record(part: CalibrationPart, workload: &str, flops: u64, bytes: u64) -> Record {
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
    fn measured_peaks_above_stated_ones_are_not_clamped() {
        let records = [
            record(CalibrationPart::Stream, "stream_add", 1, 90_000),
            record(CalibrationPart::Blas, "matmul", 2_000_000, 10),
        ];
        let found = peaks(&with_purpose(&records), None, StatedPeaks { gflops: Some(1000.0), gbps: Some(100.0) });
        let (memory, products) = (&found[MEMORY], &found["f32"]);
        assert_eq!((memory.measured, memory.finding.as_deref()), (90.0, Some("90.0 % of the stated peak")));
        assert_eq!(products.measured, 2000.0);
        let wrong = "the stated peak is too low: the measured one is 2.00 times as high";
        assert_eq!(products.finding.as_deref(), Some(wrong));
    }

    #[test]
    fn cached_operands_give_no_memory_peak() {
        let mut cached = record(CalibrationPart::Stream, "stream_copy", 0, 1000);
        cached.execution.rotation = Some(Rotation { sets: 2, bytes: 1000, cache_bytes: Some(2001) });
        assert!(peaks(&with_purpose(&[cached.clone()]), Some(2001), StatedPeaks::default()).is_empty());
        cached.execution.rotation = None;
        assert!(!reads_from_memory(&cached, Some(2001)) && reads_from_memory(&cached, Some(250)));
    }

    #[test]
    fn faster_probes_win_and_tf32_is_separate() {
        let mut product = record(CalibrationPart::Blas, "matmul", 2_000_000, 10);
        product.rates.roofline =
            Some(Box::new(Roofline { peak_tflops: Some(2.5), burst_tflops: Some(3.0), ..Roofline::default() }));
        let found = peaks(&with_purpose(&[product.clone()]), None, StatedPeaks::default());
        assert_eq!((found["f32"].measured, found["f32"].by.as_str()), (3000.0, "probe"));
        product.case.device = Device::Cuda(0);
        product.execution.tf32 = true;
        let found = peaks(&with_purpose(&[product]), None, StatedPeaks::default());
        assert_eq!((found["tf32"].by_operations, found.get("f32")), (Some(2000.0), None));
    }
}
