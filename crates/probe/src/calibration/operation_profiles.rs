//! Profile of one operation at one size, and its efficiency curve over all sizes.

use super::compute_precision::ComputePrecision;
use super::part::CalibrationPart;
use super::peaks::{CalibratedPeak, MEMORY, profile_key, reads_from_memory};
use super::purpose::{CalibrationRecord, Purpose};
use calorimeter_case::Axes;
use calorimeter_case::{Implementation, Regime, Warning};
use calorimeter_sinks::{Record, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Measured performance of an operation at one size.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationProfile {
    /// Calibration part: stream, cache, latency or blas.
    pub part: String,
    pub operation_type: String,
    pub implementation: String,
    pub precision: String,
    pub regime: String,
    pub input_shape: Axes,
    /// Status of the case, such as `ok`.
    pub status: String,
    pub reason: Option<String>,
    pub median_latency_ms: Option<f64>,
    /// Bounds of the 95 % interval.
    pub lo_latency_ms: Option<f64>,
    pub hi_latency_ms: Option<f64>,
    /// True if the interval reached the requested precision.
    pub converged: Option<bool>,
    pub num_trials: u64,
    pub measured_gflops: Option<f64>,
    pub achieved_bandwidth_gbps: Option<f64>,
    /// Operations per byte of required traffic.
    pub arithmetic_intensity: Option<f64>,
    /// Fraction of the measured peak of its precision.
    pub compute_efficiency: Option<f64>,
    /// Fraction of the measured memory peak; absent if operands came from a cache.
    pub memory_efficiency: Option<f64>,
    /// `compute` or `memory`: the limit with the higher fraction.
    pub bound: Option<String>,
    /// Higher of the two fractions.
    pub efficiency: Option<f64>,
    /// Energy per launch, if the sensors report it.
    pub joules: Option<f64>,
    /// Kernels per launch, if the stopwatch counts them.
    pub launches: Option<f64>,
    /// True if launch overhead dominates the time.
    pub launch_bound: Option<bool>,
    pub kernel: Option<String>,
    pub stopwatch: Option<String>,
    pub warnings: Vec<String>,
}

/// An operation is launch-bound if it takes less than this many times the smallest kernel.
const LAUNCH_BOUND_FACTOR: f64 = 5.0;

/// Builds the profiles of all operations, by key.
pub(super) fn operation_profiles(
    records: &[CalibrationRecord<'_>],
    cache_bytes: Option<u64>,
    peaks: &BTreeMap<String, CalibratedPeak>,
) -> BTreeMap<String, OperationProfile> {
    let floors = launch_floors(records);
    let unfused = records.iter().filter(|one| one.purpose != Purpose::Fusion);
    unfused
        .map(|one| one.record)
        .map(|record| (profile_key(record), operation_profile(record, cache_bytes, peaks, &floors)))
        .collect()
}

/// Time of the smallest kernel on the device in nanoseconds, by implementation.
fn launch_floors(records: &[CalibrationRecord<'_>]) -> BTreeMap<Implementation, f64> {
    let smallest =
        records.iter().filter(|one| one.purpose.part() == Some(CalibrationPart::Latency)).map(|one| one.record);
    let of_device = smallest.filter(|record| record.case.regime == Regime::DeviceHot);
    of_device.filter_map(|record| Some((record.case.implementation, record.time.time_ns?.median))).collect()
}

fn operation_profile(
    record: &Record,
    cache_bytes: Option<u64>,
    peaks: &BTreeMap<String, CalibratedPeak>,
    floors: &BTreeMap<Implementation, f64>,
) -> OperationProfile {
    let case = &record.case;
    let on_device = case.regime.clock().is_on_device();
    let share = |kind: &str, rate: Option<f64>| {
        let peak = peaks.get(kind).map(|peak| peak.measured).filter(|&peak| peak > 0.0)?;
        (on_device && record.outcome.status == Status::Ok).then_some(rate? / peak)
    };
    let precision = ComputePrecision::from(record).to_string();
    // Copies have no FLOP/s.
    let gflops = record.rates.tflops.map(|rate| 1e3 * rate).filter(|&rate| rate > 0.0);
    let compute = share(&precision, gflops);
    let memory = if reads_from_memory(record, cache_bytes) { share(MEMORY, record.rates.gbps) } else { None };
    let (bound, efficiency) = match (compute, memory) {
        (Some(compute), Some(memory)) if compute >= memory => (Some("compute"), Some(compute)),
        (Some(compute), None) => (Some("compute"), Some(compute)),
        (_, Some(memory)) => (Some("memory"), Some(memory)),
        (None, None) => (None, None),
    };
    let median = record.time.time_ns.map(|time| time.median);
    let near_floor =
        floors.get(&case.implementation).zip(median).map(|(floor, nanos)| nanos < LAUNCH_BOUND_FACTOR * floor);
    let millis = |nanos: Option<f64>| nanos.map(|nanos| nanos / 1e6);
    let ratio = |(flops, bytes): (u64, u64)| (bytes > 0).then(|| flops as f64 / bytes as f64);
    OperationProfile {
        part: case.name.clone(),
        operation_type: case.workload.to_string(),
        implementation: case.implementation.to_string(),
        precision,
        regime: case.regime.to_string(),
        input_shape: case.shape.clone(),
        status: record.outcome.status.as_str().into(),
        reason: record.outcome.reason.clone(),
        median_latency_ms: millis(median),
        lo_latency_ms: millis(record.time.time_ns.and_then(|time| time.lo)),
        hi_latency_ms: millis(record.time.time_ns.and_then(|time| time.hi)),
        converged: record.time.converged,
        num_trials: record.time.windows.len() as u64,
        measured_gflops: gflops,
        achieved_bandwidth_gbps: record.rates.gbps,
        arithmetic_intensity: case.flops.zip(case.bytes).and_then(ratio),
        compute_efficiency: compute,
        memory_efficiency: memory,
        bound: bound.map(str::to_owned),
        efficiency,
        joules: record.telemetry.as_ref().and_then(|telemetry| telemetry.joules),
        launches: record.execution.kernel_launches,
        launch_bound: if on_device {
            record.time.launch_bound.into_iter().chain(near_floor).reduce(|a, b| a || b)
        } else {
            None
        },
        kernel: record.execution.kernel.clone(),
        stopwatch: record.execution.stopwatch.clone(),
        warnings: record.warnings.iter().map(Warning::to_string).collect(),
    }
}

/// Measured point of an efficiency curve. Curves are sorted points without a fit, since there is no independent data to
/// validate a fit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EfficiencyPoint {
    /// Required traffic in bytes.
    pub bytes: u64,
    pub shape: String,
    pub gflops: Option<f64>,
    pub gbps: Option<f64>,
    pub efficiency: Option<f64>,
}

/// Builds one curve per operation, implementation, dtype and regime, sorted by size.
pub(super) fn curves(
    records: &[CalibrationRecord<'_>],
    operations: &BTreeMap<String, OperationProfile>,
) -> BTreeMap<String, Vec<EfficiencyPoint>> {
    let mut curves: BTreeMap<String, Vec<EfficiencyPoint>> = BTreeMap::new();
    let has_sizes = |one: &&CalibrationRecord<'_>| {
        ![Some(CalibrationPart::Fusion), Some(CalibrationPart::Latency)].contains(&one.purpose.part())
    };
    let measured = records.iter().filter(has_sizes).map(|one| one.record);
    for record in measured.filter(|record| record.outcome.status == Status::Ok) {
        let case = &record.case;
        let curve = format!("{}/{}/{}/{}", case.workload, case.implementation, case.element, case.regime);
        curves.entry(curve).or_default().push(EfficiencyPoint {
            bytes: case.bytes.unwrap_or(0),
            shape: case.shape.to_string(),
            gflops: record.rates.tflops.map(|rate| 1e3 * rate).filter(|&rate| rate > 0.0),
            gbps: record.rates.gbps,
            efficiency: operations.get(&profile_key(record)).and_then(|operation| operation.efficiency),
        });
    }
    for points in curves.values_mut() {
        points.sort_by_key(|point| point.bytes);
    }
    curves
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibration::peaks::{StatedPeaks, peaks, tests::record};
    use crate::calibration::purpose::with_purpose;

    fn profiles(records: &[Record]) -> BTreeMap<String, OperationProfile> {
        let records = with_purpose(records);
        operation_profiles(&records, None, &peaks(&records, None, StatedPeaks::default()))
    }

    #[test]
    fn profile_keys_do_not_depend_on_times() {
        let (mut one, other) =
            (record(CalibrationPart::Blas, "matmul", 2_000, 64), record(CalibrationPart::Blas, "matmul", 2_000, 64));
        one.time.time_ns.as_mut().unwrap().median = 12.5;
        let keys = |record| profiles(&[record]).into_keys().collect::<Vec<_>>();
        assert_eq!(keys(one), ["matmul/eager/f32/n64/device-cold"]);
        assert_eq!(keys(other), ["matmul/eager/f32/n64/device-cold"]);
    }

    #[test]
    fn efficiency_is_relative_to_measured_peaks() {
        let records = [
            record(CalibrationPart::Stream, "stream_copy", 0, 100_000),
            record(CalibrationPart::Stream, "stream_scale", 1, 50_000),
            record(CalibrationPart::Blas, "matmul", 2_000_000, 1_000),
        ];
        let found = profiles(&records);
        let find = |name: &str| found.values().find(|one| one.operation_type == name).unwrap();
        assert_eq!(find("stream_copy").efficiency, Some(1.0));
        let scale = find("stream_scale");
        assert_eq!((scale.efficiency, scale.bound.as_deref()), (Some(0.5), Some("memory")));
        let matmul = find("matmul");
        assert_eq!((matmul.efficiency, matmul.bound.as_deref()), (Some(1.0), Some("compute")));
        assert_eq!(matmul.arithmetic_intensity, Some(2000.0));
    }

    #[test]
    fn failed_operations_keep_their_reason() {
        let failed = Record::without_time(record(CalibrationPart::Blas, "dot", 1, 1).case, Status::Failed, "no memory");
        let found = profiles(&[failed]).into_values().next().unwrap();
        assert_eq!((found.status.as_str(), found.reason.as_deref()), ("failed", Some("no memory")));
        assert_eq!((found.median_latency_ms, found.num_trials), (None, 0));
    }

    #[test]
    fn times_near_the_launch_floor_are_launch_bound() {
        let mut smallest = record(CalibrationPart::Latency, "stream_add", 1, 12);
        smallest.case.regime = Regime::DeviceHot;
        let mut long = record(CalibrationPart::Blas, "axpy", 2, 5_000);
        long.time.time_ns.as_mut().unwrap().median = 5000.0;
        let found = profiles(&[smallest, long, record(CalibrationPart::Blas, "dot", 2, 8)]);
        let bound = |name: &str| found.values().find(|one| one.operation_type == name).unwrap().launch_bound;
        assert_eq!((bound("axpy"), bound("dot")), (Some(false), Some(true)));
    }

    #[test]
    fn curve_points_are_sorted_by_size() {
        let records = [
            record(CalibrationPart::Blas, "dot", 20, 80),
            record(CalibrationPart::Blas, "dot", 2, 8),
            record(CalibrationPart::Blas, "dot", 200, 800),
        ];
        let found = curves(&with_purpose(&records), &profiles(&records));
        let bytes: Vec<u64> = found["dot/eager/f32/device-cold"].iter().map(|point| point.bytes).collect();
        assert_eq!(bytes, [8, 80, 800]);
    }
}
