//! The most that a device reaches, measured by probes of our own: the roof that times are held against.

mod probe;
#[cfg(feature = "cuda")]
mod tf32;

pub use probe::Probe;

use crate::worker::folder_name;
use calorimeter_recipes::Dtype;
use calorimeter_sinks::record::Roofline;
use calorimeter_sinks::{Record, Status};
use calorimeter_timing::Regime;
use calorimeter_zoo::Device;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The peaks of one device under one driver and one policy of clocks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Peaks {
    /// The device, its driver and its clocks: peaks hold for these alone.
    pub device: String,
    pub driver: String,
    pub policy: String,
    /// When they were measured.
    pub measured: String,
    /// Memory far larger than any cache, in 10⁹ bytes per second; absent where it could not be measured.
    pub memory_gbps: Option<f64>,
    /// Memory that the last cache holds.
    pub cache_gbps: Option<f64>,
    /// Matrix products by their kind of number, in 10¹² operations per second; `None` where it could not be measured.
    pub tflops: BTreeMap<String, Option<f64>>,
    /// Whether this process has measured them: they are as good as they get.
    #[serde(skip)]
    pub fresh: bool,
}

/// What can be over a peak by noise alone.
const TOLERATED_PERCENT: f64 = 102.0;

/// The peaks that cases of a dtype are held against: those of an earlier run where the device, its driver and its clocks
/// are the same, or measured now. None on the mock device.
pub fn of(dtype: Dtype, known: &mut Option<Peaks>, kept: Option<&Path>, probe: &mut Probe<'_>) -> Option<Peaks> {
    if !probe.can() {
        return None;
    }
    let path = kept.map(|folder| folder.join(format!("{}.json", folder_name(&probe.told.identity))));
    let peaks = known.get_or_insert_with(|| read(path.as_deref(), probe).unwrap_or_else(|| probe.nothing()));
    let before = peaks.clone();
    if peaks.memory_gbps.is_none() {
        (peaks.memory_gbps, peaks.cache_gbps) = (probe.memory(), probe.cache());
    }
    for kind in kinds(probe.device, dtype, false, true) {
        peaks.tflops.entry(kind.to_owned()).or_insert_with(|| probe.products(kind));
    }
    if *peaks != before {
        peaks.measured = crate::run::now().to_rfc3339();
        keep(path.as_deref(), peaks);
    }
    Some(peaks.clone())
}

/// Measures the peaks anew, because a case went over them: what is higher counts.
pub fn again(dtype: Dtype, known: &mut Option<Peaks>, kept: Option<&Path>, probe: &mut Probe<'_>) -> Option<Peaks> {
    let peaks = known.as_mut().filter(|peaks| !peaks.fresh)?;
    let higher = |old: Option<f64>, new: Option<f64>| old.into_iter().chain(new).reduce(f64::max);
    peaks.memory_gbps = higher(peaks.memory_gbps, probe.memory());
    peaks.cache_gbps = higher(peaks.cache_gbps, probe.cache());
    for kind in kinds(probe.device, dtype, false, true) {
        let old = peaks.tflops.get(kind).copied().flatten();
        peaks.tflops.insert(kind.to_owned(), higher(old, probe.products(kind)));
    }
    peaks.fresh = true;
    peaks.measured = crate::run::now().to_rfc3339();
    let path = kept.map(|folder| folder.join(format!("{}.json", folder_name(&probe.told.identity))));
    keep(path.as_deref(), peaks);
    Some(peaks.clone())
}

fn read(path: Option<&Path>, probe: &Probe<'_>) -> Option<Peaks> {
    let peaks: Peaks = serde_json::from_slice(&std::fs::read(path?).ok()?).ok()?;
    let Peaks { device, driver, policy, .. } = &peaks;
    let same = (device, driver, policy) == (&probe.told.identity, &probe.told.driver, &probe.policy);
    same.then_some(peaks)
}

/// Another worker may be writing at this moment: a whole file takes the place of a whole file. Without it the next run
/// measures again.
fn keep(path: Option<&Path>, peaks: &Peaks) {
    let Some(path) = path else { return };
    let temporary: PathBuf = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = || -> std::io::Result<()> {
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        std::fs::write(&temporary, serde_json::to_vec_pretty(peaks)?)?;
        std::fs::rename(&temporary, path)
    };
    if let Err(error) = written() {
        eprintln!("peaks are not kept in {}: {error}", path.display());
    }
}

/// The kinds of number that the products of a case may be computed in. A device computes quantised operands in f32 where
/// it has nothing else, and f32 in TF32 where it may.
pub fn kinds(device: Device, dtype: Dtype, plain: bool, may_use_tf32: bool) -> Vec<&'static str> {
    let own = match dtype {
        Dtype::F32 => "f32",
        Dtype::F16 => "f16",
        Dtype::Bf16 => "bf16",
    };
    let mut kinds = vec![own];
    if !plain && own != "f32" {
        kinds.push("f32");
    }
    if matches!(device, Device::Cuda(_)) && may_use_tf32 && kinds.contains(&"f32") {
        kinds.push("tf32");
    }
    kinds
}

/// Where a case stands against the peak of its kinds of number, and that of memory or cache.
/// `share` of the operations that the case counts are really done.
pub fn place(record: &Record, peaks: &Peaks, kinds: &[&str], share: f64) -> Option<Roofline> {
    let nanos = record.time_ns?.median;
    let regime: Regime = record.case.regime.parse().ok()?;
    if !matches!(regime, Regime::DeviceCold | Regime::DeviceHot | Regime::Graph) {
        return None;
    }
    let peak_tflops = kinds.iter().filter_map(|&kind| peaks.tflops.get(kind).copied().flatten()).reduce(f64::max);
    let cold = comes_from_memory(record);
    let peak_gbps = if cold { peaks.memory_gbps } else { peaks.cache_gbps.or(peaks.memory_gbps) };
    let percent = |rate: Option<f64>, peak: Option<f64>| Some(100.0 * rate? / peak?);
    let compute_percent = percent(record.case.flops.map(|flops| flops as f64 * share / nanos / 1e3), peak_tflops);
    let memory_percent = percent(record.case.bytes.map(|bytes| bytes as f64 / nanos), peak_gbps);
    let (bound, percent) = match (compute_percent, memory_percent) {
        (Some(compute), Some(memory)) if compute >= memory => ("compute", compute),
        (Some(compute), None) => ("compute", compute),
        (_, Some(memory)) => ("memory", memory),
        (None, None) => return None,
    };
    Some(Roofline { bound: bound.into(), percent, compute_percent, memory_percent, peak_tflops, peak_gbps })
}

/// Whether the operands of each launch come from memory and not from a cache.
fn comes_from_memory(record: &Record) -> bool {
    record
        .rotation
        .is_some_and(|rotation| u64::from(rotation.sets) * rotation.bytes >= rotation.cache_bytes.unwrap_or(u64::MAX))
}

/// What no device can do: bytes or operations were miscounted, or came from a cache, or were not done at all. The cache
/// has no such limit: smaller and faster ones stand before it.
pub fn implausible(record: &Record, roof: &Roofline) -> Option<String> {
    let over = |percent: Option<f64>| percent.filter(|&percent| percent > TOLERATED_PERCENT);
    let (peak, unit, percent) = if let Some(percent) = over(roof.compute_percent) {
        (roof.peak_tflops?, "TFLOP/s", percent)
    } else {
        let percent = over(roof.memory_percent).filter(|_| comes_from_memory(record))?;
        (roof.peak_gbps?, "GB/s", percent)
    };
    Some(format!(
        "implausible: {percent:.0} % of the measured peak of {peak:.1} {unit}; work was miscounted, cached or left out"
    ))
}

/// Holds a record against the peaks; one that cannot be is no result.
pub fn judge(record: &mut Record, roof: Option<Roofline>) {
    let wrong = roof.as_ref().and_then(|roof| implausible(record, roof));
    record.roofline = roof;
    if let Some(reason) = wrong {
        record.status = Status::Failed;
        record.reason = Some(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_sinks::Case;
    use calorimeter_sinks::record::{Estimate, Rotation};

    fn peaks() -> Peaks {
        let tflops = [("bf16".to_owned(), Some(800.0)), ("f32".to_owned(), None)].into();
        Peaks { memory_gbps: Some(4000.0), cache_gbps: Some(9000.0), tflops, ..Peaks::default() }
    }

    fn record(flops: u64, bytes: u64, nanos: f64, sets: u32) -> Record {
        let case = Case { flops: Some(flops), bytes: Some(bytes), regime: "device-cold".into(), ..Case::default() };
        Record {
            time_ns: Some(Estimate { median: nanos, lo: None, hi: None }),
            tflops: Some(flops as f64 / nanos / 1e3),
            gbps: Some(bytes as f64 / nanos),
            rotation: Some(Rotation { sets, bytes, cache_bytes: Some(50 << 20) }),
            ..Record::new(case, Status::Ok)
        }
    }

    #[test]
    fn the_nearer_roof_binds() {
        // 1 GFLOP and 8 MB in 4 µs: 250 TFLOP/s of 800, 2000 GB/s of 4000.
        let memory = place(&record(1_000_000_000, 8_000_000, 4_000.0, 20), &peaks(), &["bf16"], 1.0).unwrap();
        assert_eq!((memory.bound.as_str(), memory.percent), ("memory", 50.0));
        assert_eq!(memory.compute_percent, Some(31.25));
        let compute = place(&record(1_000_000_000, 8_000, 4_000.0, 20), &peaks(), &["bf16"], 1.0).unwrap();
        assert_eq!(compute.bound, "compute");
    }

    #[test]
    fn a_peak_that_is_not_known_gives_no_percentage() {
        let roof = place(&record(1_000_000_000, 8_000_000, 4_000.0, 20), &peaks(), &["f32"], 1.0).unwrap();
        assert_eq!((roof.compute_percent, roof.bound.as_str()), (None, "memory"));
    }

    #[test]
    fn more_than_the_device_can_do_is_an_error_and_not_a_result() {
        let judged = |mut record: Record| {
            let roof = place(&record, &peaks(), &["bf16"], 1.0);
            judge(&mut record, roof);
            record.reason
        };
        let fast = judged(record(10_000_000_000, 8_000_000, 10_000.0, 20)).unwrap();
        assert!(fast.contains("125 % of the measured peak of 800.0 TFLOP/s"), "{fast}");
        let wide = judged(record(1_000, 50_000_000, 10_000.0, 20)).unwrap();
        assert!(wide.contains("125 % of the measured peak of 4000.0 GB/s"), "{wide}");
        // Two sets of a megabyte stay in the cache, whose speed has no such limit.
        assert_eq!(judged(record(1_000, 1_000_000, 100.0, 2)), None);
        assert_eq!(judged(record(8_150_000_000, 8_000_000, 10_000.0, 20)), None);
    }
}
