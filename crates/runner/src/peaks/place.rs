//! Position of a case relative to the roofline.

use super::known::{Peaks, TOLERATED_PERCENT};
use super::limit::{Limit, ProductKind};
use calorimeter_case::record::{Against, Roof, Roofline};
use calorimeter_sinks::Record;

/// Compares a case with the sustained peaks of its precisions, and with memory or cache. `share` is the fraction of the
/// counted operations that are actually executed.
pub fn place(record: &Record, peaks: &Peaks, kinds: &[ProductKind], share: f64, cache_bytes: u64) -> Option<Roofline> {
    let nanos = record.time.time_ns?.median;
    if !record.case.regime.clock().is_the_devices() {
        return None;
    }
    let known = || kinds.iter().filter_map(|kind| peaks.products.get(kind));
    let peak_tflops = known().map(|peak| peak.sustained).reduce(f64::max);
    let burst_tflops = known().map(|peak| peak.burst).reduce(f64::max);
    let cold = comes_from_memory(record, cache_bytes);
    let peak_gbps = if cold { peaks.memory_gbps } else { peaks.cache_gbps.or(peaks.memory_gbps) };
    let percent = |rate: Option<f64>, peak: Option<f64>| Some(100.0 * rate? / peak?);
    let compute_percent = percent(record.case.flops.map(|flops| flops as f64 * share / nanos / 1e3), peak_tflops);
    let memory_percent = percent(record.case.bytes.map(|bytes| bytes as f64 / nanos), peak_gbps);
    let storage = if cold || peaks.cache_gbps.is_none() { Roof::Memory } else { Roof::Cache };
    let (bound, against, percent) = match (compute_percent, memory_percent) {
        (Some(compute), Some(memory)) if compute >= memory => (Roof::Compute, Against::Sustained, compute),
        (Some(compute), None) => (Roof::Compute, Against::Sustained, compute),
        (_, Some(memory)) => (storage, Against::Burst, memory),
        (None, None) => return None,
    };
    let against = Some(against);
    Some(Roofline { bound, percent, against, compute_percent, memory_percent, peak_tflops, burst_tflops, peak_gbps })
}

/// True if operands come from memory: the buffer sets together exceed the cache, or a single one is at least four times
/// as large.
fn comes_from_memory(record: &Record, cache_bytes: u64) -> bool {
    match record.execution.rotation {
        Some(rotation) => u64::from(rotation.sets) * rotation.bytes >= rotation.cache_bytes.unwrap_or(cache_bytes),
        None => record.case.bytes.is_some_and(|bytes| bytes >= 4 * cache_bytes),
    }
}

/// Returns the limits that a case exceeds by more than noise. The cache has no such limit, since smaller and faster
/// caches may hold the operands.
pub fn doubtful(record: &Record, roof: &Roofline, kinds: &[ProductKind], cache_bytes: u64) -> Vec<Limit> {
    let over = |percent: Option<f64>| percent.is_some_and(|percent| percent > TOLERATED_PERCENT);
    let of_burst = || Some(roof.compute_percent? * roof.peak_tflops? / roof.burst_tflops?);
    let mut doubtful = if over(of_burst()) { kinds.iter().copied().map(Limit::Products).collect() } else { Vec::new() };
    if over(roof.memory_percent) && comes_from_memory(record, cache_bytes) {
        doubtful.push(Limit::Memory);
    }
    doubtful
}
