//! Position of a case relative to the roofline.

use super::device_peaks::{DevicePeaks, TOLERATED_PERCENT};
use super::limit::{Limit, MatmulPrecision};
use calorimeter_case::Name;
use calorimeter_case::record::{PeakKind, Roofline, RooflineBound};
use calorimeter_sinks::Record;

/// Compares a case with the sustained peaks of its precisions, and with memory or cache. `share` is the fraction of the
/// counted operations that are actually executed.
pub fn roofline(
    record: &Record,
    peaks: &DevicePeaks,
    kinds: &[MatmulPrecision],
    share: f64,
    cache_bytes: u64,
) -> Option<Roofline> {
    let nanos = record.time.time_ns?.median;
    if !record.case.regime.clock().is_on_device() {
        return None;
    }
    let known = || kinds.iter().filter_map(|kind| Some((kind, peaks.products.get(kind)?)));
    let sustained = known().max_by(|(_, one), (_, other)| one.sustained.total_cmp(&other.sustained));
    let (peak_dtype, peak_tflops) = sustained.map(|(kind, peak)| (Name::new(kind.name()), peak.sustained)).unzip();
    let burst_tflops = known().map(|(_, peak)| peak.burst).reduce(f64::max);
    let cold = reads_from_memory(record, cache_bytes);
    let peak_gbps = if cold { peaks.memory_gbps } else { peaks.cache_gbps.or(peaks.memory_gbps) };
    let percent = |rate: Option<f64>, peak: Option<f64>| Some(100.0 * rate? / peak?);
    let compute_percent = percent(record.case.flops.map(|flops| flops as f64 * share / nanos / 1e3), peak_tflops);
    let memory_percent = percent(record.case.bytes.map(|bytes| bytes as f64 / nanos), peak_gbps);
    let storage = if cold || peaks.cache_gbps.is_none() { RooflineBound::Memory } else { RooflineBound::Cache };
    let (bound, against, percent) = match (compute_percent, memory_percent) {
        (Some(compute), Some(memory)) if compute >= memory => (RooflineBound::Compute, PeakKind::Sustained, compute),
        (Some(compute), None) => (RooflineBound::Compute, PeakKind::Sustained, compute),
        (_, Some(memory)) => (storage, PeakKind::Burst, memory),
        (None, None) => return None,
    };
    let against = Some(against);
    Some(Roofline {
        bound,
        percent,
        against,
        compute_percent,
        memory_percent,
        peak_tflops,
        peak_dtype,
        burst_tflops,
        peak_gbps,
    })
}

/// True if operands come from memory: the buffer sets together exceed the cache, or a single one is at least four times
/// as large.
fn reads_from_memory(record: &Record, cache_bytes: u64) -> bool {
    match record.execution.rotation {
        Some(rotation) => u64::from(rotation.sets) * rotation.bytes >= rotation.cache_bytes.unwrap_or(cache_bytes),
        None => record.case.bytes.is_some_and(|bytes| bytes >= 4 * cache_bytes),
    }
}

/// Returns the limits that a case exceeds by more than noise. The cache has no such limit, since smaller and faster
/// caches may hold the operands.
pub fn exceeded_limits(record: &Record, roof: &Roofline, kinds: &[MatmulPrecision], cache_bytes: u64) -> Vec<Limit> {
    let over = |percent: Option<f64>| percent.is_some_and(|percent| percent > TOLERATED_PERCENT);
    let of_burst = || Some(roof.compute_percent? * roof.peak_tflops? / roof.burst_tflops?);
    let mut doubtful = if over(of_burst()) { kinds.iter().copied().map(Limit::Matmul).collect() } else { Vec::new() };
    if over(roof.memory_percent) && reads_from_memory(record, cache_bytes) {
        doubtful.push(Limit::Memory);
    }
    doubtful
}
