//! Supported precisions of a device, their speed, and the reasons for unsupported ones.

use super::compute_precision::ComputePrecision;
use super::peaks::CalibratedPeak;
use super::purpose::CalibrationRecord;
use calorimeter_case::{Axes, Dtype, Element};
use calorimeter_sinks::{Record, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Precisions of a device.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PrecisionMatrix {
    pub supported_precisions: Vec<String>,
    /// Unsupported precisions with their reasons.
    pub unsupported_precisions: BTreeMap<String, String>,
    pub peak_gflops_by_precision: BTreeMap<String, f64>,
    /// Speed-up over f32, at the largest matmul size measured in both.
    pub speedup_vs_fp32: BTreeMap<String, PrecisionSpeedup>,
    /// Peaks stated on the command line.
    pub theoretical_peaks: BTreeMap<String, f64>,
}

/// Comparison of two precisions at one size.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PrecisionSpeedup {
    pub ratio: f64,
    /// Matmul size.
    pub shape: String,
}

const QUANTIZED: &str =
    "calibration measures 16-bit and 32-bit floats only; `calorimeter run` measures quantized matmuls";

/// Precisions in listing order, with the default reason for their absence.
const PRECISIONS: [(&str, Option<ComputePrecision>, Option<&str>); 9] = [
    ("f64", None, Some("no operator of this version supports it")),
    ("f32", Some(ComputePrecision::F32), None),
    ("tf32", Some(ComputePrecision::Tf32), Some("f32 matmuls did not use it")),
    ("f16", Some(ComputePrecision::float(Dtype::F16)), None),
    ("bf16", Some(ComputePrecision::float(Dtype::Bf16)), None),
    ("f8", None, Some(QUANTIZED)),
    ("i32", Some(ComputePrecision::Element(Element::Signed(32))), Some("no operator of this version supports it")),
    ("i8", Some(ComputePrecision::Element(Element::Signed(8))), Some(QUANTIZED)),
    ("i4", Some(ComputePrecision::Element(Element::Signed(4))), Some(QUANTIZED)),
];

/// Computes the matrix from records.
pub(super) fn precisions(
    records: &[CalibrationRecord<'_>],
    peaks: &BTreeMap<String, CalibratedPeak>,
) -> PrecisionMatrix {
    let mut matrix = PrecisionMatrix::default();
    for (name, numbers, why) in PRECISIONS {
        let matching: Vec<&Record> = records
            .iter()
            .map(|one| one.record)
            .filter(|record| Some(ComputePrecision::from(*record)) == numbers)
            .collect();
        if matching.iter().any(|record| record.outcome.status == Status::Ok) {
            matrix.supported_precisions.push(name.into());
        } else {
            let reason = matching.iter().find_map(|record| record.outcome.reason.as_deref()).or(why);
            let reason = reason.unwrap_or("not requested; add it with --dtypes");
            matrix.unsupported_precisions.insert(name.into(), reason.into());
        }
        if let Some(peak) = peaks.get(name) {
            matrix.peak_gflops_by_precision.insert(name.into(), peak.measured);
            matrix.theoretical_peaks.extend(peak.stated.map(|stated| (name.to_owned(), stated)));
        }
        if let Some(numbers) = numbers.filter(|numbers| *numbers != ComputePrecision::F32) {
            matrix.speedup_vs_fp32.extend(speedup(records, numbers).map(|speedup| (name.to_owned(), speedup)));
        }
    }
    matrix
}

fn speedup(records: &[CalibrationRecord<'_>], numbers: ComputePrecision) -> Option<PrecisionSpeedup> {
    let fastest = |wanted: ComputePrecision, shape: &Axes| {
        let of = timed_matmuls(records)
            .filter(|record| ComputePrecision::from(*record) == wanted && record.case.shape == *shape);
        of.filter_map(|record| record.rates.tflops).reduce(f64::max)
    };
    let mut by_size: Vec<&Record> =
        timed_matmuls(records).filter(|record| ComputePrecision::from(*record) == numbers).collect();
    by_size.sort_by_key(|record| record.case.flops);
    by_size.iter().rev().find_map(|record| {
        let shape = &record.case.shape;
        let ratio = fastest(numbers, shape)? / fastest(ComputePrecision::F32, shape)?;
        Some(PrecisionSpeedup { ratio, shape: shape.to_string() })
    })
}

/// Matmul records with a time.
fn timed_matmuls<'a>(records: &[CalibrationRecord<'a>]) -> impl Iterator<Item = &'a Record> {
    let of_matrices = records.iter().filter(|one| one.purpose.is_matmul()).map(|one| one.record);
    of_matrices.filter(|record| record.outcome.status == Status::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::part::CalibrationPart;
    use crate::calibration::peaks::{StatedPeaks, peaks, tests::record};
    use crate::calibration::purpose::with_purpose;

    #[test]
    fn dtypes_are_compared_at_the_largest_common_size() {
        let in_bf16 = |flops, bytes| {
            let mut record = record(CalibrationPart::Blas, "matmul", flops, bytes);
            record.case.element = Dtype::Bf16.into();
            record
        };
        let mut half = in_bf16(1, 1);
        (half.case.element, half.outcome.status, half.outcome.reason) =
            (Dtype::F16.into(), Status::Unsupported, Some("no units".into()));
        let records =
            [record(CalibrationPart::Blas, "matmul", 1_000, 64), in_bf16(2_000, 64), in_bf16(9_000, 128), half];
        let records = with_purpose(&records);
        let matrix = precisions(&records, &peaks(&records, None, StatedPeaks::default()));
        assert_eq!(matrix.supported_precisions, ["f32", "bf16"]);
        assert_eq!(matrix.unsupported_precisions["f16"], "no units");
        assert!(matrix.unsupported_precisions["f64"].contains("no operator"));
        let speedup = &matrix.speedup_vs_fp32["bf16"];
        assert_eq!((speedup.ratio, speedup.shape.as_str()), (2.0, "n64"));
        assert_eq!(matrix.peak_gflops_by_precision["bf16"], 9.0);
    }
}
