//! Which types of numbers the device computes in, how fast, and why not in the others.

use super::peaks::{Peak, kind};
use super::purpose::CalibrationRecord;
use calorimeter_sinks::{Record, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The types of a device.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PrecisionMatrix {
    pub supported_precisions: Vec<String>,
    /// The others, each with the reason.
    pub unsupported_precisions: BTreeMap<String, String>,
    pub peak_gflops_by_precision: BTreeMap<String, f64>,
    /// How many times as fast as f32 the largest product is that both were measured at.
    pub speedup_vs_fp32: BTreeMap<String, PrecisionSpeedup>,
    /// What the command line said.
    pub theoretical_peaks: BTreeMap<String, f64>,
}

/// A comparison of two types at one size.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PrecisionSpeedup {
    pub ratio: f64,
    /// The size of the product.
    pub shape: String,
}

/// In the order in which they are listed everywhere.
const PRECISIONS: [(&str, Option<&str>); 9] = [
    ("f64", Some("no operator of this version takes it")),
    ("f32", None),
    ("tf32", Some("f32 products were not rounded to it")),
    ("f16", None),
    ("bf16", None),
    ("f8", Some("calibration multiplies floats of 16 and 32 bits; `calorimeter run` measures quantised products")),
    ("i32", Some("no operator of this version takes it")),
    ("i8", Some("calibration multiplies floats of 16 and 32 bits; `calorimeter run` measures quantised products")),
    ("i4", Some("calibration multiplies floats of 16 and 32 bits; `calorimeter run` measures quantised products")),
];

/// The matrix that records show.
pub fn precisions(records: &[CalibrationRecord<'_>], peaks: &BTreeMap<String, Peak>) -> PrecisionMatrix {
    let mut matrix = PrecisionMatrix::default();
    for (name, why) in PRECISIONS {
        let of: Vec<&Record> = records.iter().map(|one| one.record).filter(|record| kind(record) == name).collect();
        if of.iter().any(|record| record.outcome.status == Status::Ok) {
            matrix.supported_precisions.push(name.into());
        } else {
            let reason = of.iter().find_map(|record| record.outcome.reason.as_deref()).or(why);
            let reason = reason.unwrap_or("not asked for; name it with --dtypes");
            matrix.unsupported_precisions.insert(name.into(), reason.into());
        }
        if let Some(peak) = peaks.get(name) {
            matrix.peak_gflops_by_precision.insert(name.into(), peak.measured);
            matrix.theoretical_peaks.extend(peak.stated.map(|stated| (name.to_owned(), stated)));
        }
        if name != "f32" {
            matrix.speedup_vs_fp32.extend(speedup(records, name).map(|speedup| (name.to_owned(), speedup)));
        }
    }
    matrix
}

fn speedup(records: &[CalibrationRecord<'_>], name: &str) -> Option<PrecisionSpeedup> {
    let fastest = |wanted: &str, shape: &str| {
        let of = products(records).filter(|record| kind(record) == wanted);
        of.filter(|record| record.case.shape.to_string() == shape)
            .filter_map(|record| record.rates.tflops)
            .reduce(f64::max)
    };
    let mut by_size: Vec<&Record> = products(records).filter(|record| kind(record) == name).collect();
    by_size.sort_by_key(|record| record.case.flops);
    by_size.iter().rev().find_map(|record| {
        let shape = record.case.shape.to_string();
        let ratio = fastest(name, &shape)? / fastest("f32", &shape)?;
        Some(PrecisionSpeedup { ratio, shape })
    })
}

/// The products that have a time.
fn products<'a>(records: &[CalibrationRecord<'a>]) -> impl Iterator<Item = &'a Record> {
    let of_matrices = records.iter().filter(|one| one.purpose.is_product()).map(|one| one.record);
    of_matrices.filter(|record| record.outcome.status == Status::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::parts::Part;
    use crate::calibration::peaks::{Stated, peaks, tests::record};
    use crate::calibration::purpose::with_purpose;
    use calorimeter_case::Dtype;

    #[test]
    fn types_are_compared_at_the_largest_size_that_both_have_and_others_have_a_reason() {
        let in_bf16 = |flops, bytes| {
            let mut record = record(Part::Blas, "matmul", flops, bytes);
            record.case.element = Dtype::Bf16.into();
            record
        };
        let mut half = in_bf16(1, 1);
        (half.case.element, half.outcome.status, half.outcome.reason) =
            (Dtype::F16.into(), Status::Unsupported, Some("no units".into()));
        let records = [record(Part::Blas, "matmul", 1_000, 64), in_bf16(2_000, 64), in_bf16(9_000, 128), half];
        let records = with_purpose(&records);
        let matrix = precisions(&records, &peaks(&records, None, Stated::default()));
        assert_eq!(matrix.supported_precisions, ["f32", "bf16"]);
        assert_eq!(matrix.unsupported_precisions["f16"], "no units");
        assert!(matrix.unsupported_precisions["f64"].contains("no operator"));
        let speedup = &matrix.speedup_vs_fp32["bf16"];
        assert_eq!((speedup.ratio, speedup.shape.as_str()), (2.0, "n64"));
        assert_eq!(matrix.peak_gflops_by_precision["bf16"], 9.0);
    }
}
