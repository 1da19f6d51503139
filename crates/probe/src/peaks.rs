//! Peaks of a device, measured by probes: the roofline that times are compared with.

mod device_peaks;
mod limit;
mod matmul_precisions;
mod matmul_shapes;
mod probe;
mod rate_samples;
mod recheck;
mod roofline;

pub use device_peaks::DevicePeaks;
use device_peaks::{GemmPeak, TOLERATED_PERCENT};
pub use limit::{Limit, MatmulPrecision};
pub use matmul_precisions::matmul_precisions;
pub use matmul_shapes::case_shape as form;
pub use probe::{CaseRecheck, PeakProbe};
use rate_samples::RateSamples;
use recheck::{ProbeComparer, RecheckResult, judge};
pub use roofline::{exceeded_limits, roofline};

use calorimeter_case::Warning;
use calorimeter_case::record::Roofline;
use calorimeter_sinks::{Record, cache};
use std::path::Path;

/// Returns the peaks of memory and of the given kinds of GEMM. They are loaded from an earlier run if device, driver
/// and clock settings match, and otherwise measured. `None` on the mock device.
pub fn load_or_measure(
    kinds: &[MatmulPrecision],
    known: &mut Option<DevicePeaks>,
    kept: Option<&Path>,
    probe: &mut PeakProbe<'_>,
) -> Option<DevicePeaks> {
    if !probe.is_supported() {
        return None;
    }
    let path = cache_path(kept, probe);
    let peaks = known.get_or_insert_with(|| match read_cached(path.as_deref(), probe) {
        Ok(kept) => kept.unwrap_or_else(|| probe.empty_peaks()),
        Err(why) => DevicePeaks { rejection: Some(why), ..probe.empty_peaks() },
    });
    let mut new = false;
    if peaks.memory_gbps.is_none() && !peaks.failed.contains_key(&Limit::Memory) {
        new |= peaks.measure_memory(probe);
    }
    for &kind in kinds {
        let limit = Limit::Matmul(kind);
        if !peaks.products.contains_key(&kind) && !peaks.failed.contains_key(&limit) {
            match probe.measure_matmul(kind) {
                Ok(peak) => {
                    peaks.raise(kind, peak);
                    new = true;
                }
                Err(why) => peaks.record_failure(limit, why),
            }
        }
    }
    if new {
        peaks.save(path.as_deref());
    }
    let result = peaks.clone();
    peaks.rejection = None;
    Some(result)
}

/// Measures GEMM peaks again that a case exceeded; returns the failures. This applies only to devices with shared
/// memory, where other processes may have disturbed the probe.
pub fn remeasure_exceeded(
    roof: &Roofline,
    kinds: &[MatmulPrecision],
    peaks: &mut DevicePeaks,
    kept: Option<&Path>,
    probe: &mut PeakProbe<'_>,
) -> Vec<Warning> {
    let outdone = if probe.shares_memory() { peaks.take_exceeded(roof, kinds) } else { Vec::new() };
    let mut failed = Vec::new();
    for &kind in &outdone {
        match probe.measure_matmul(kind) {
            Ok(peak) => peaks.raise(kind, peak),
            Err(why) => failed.push(Warning::exceeded_peak(kind, why)),
        }
    }
    if !outdone.is_empty() {
        peaks.save(cache_path(kept, probe).as_deref());
    }
    failed
}

/// Measures a case again that is faster than a peak, interleaved with probes of its own size. The device may have been
/// slower when the peak was measured, or another GEMM shape may be faster. The peak is then raised to the rate of the
/// probe, never to that of the case. Returns warnings, or as an error the reason why the time is implausible.
pub fn verify_fast_case(
    record: &Record,
    over: &[Limit],
    known: &mut DevicePeaks,
    kept: Option<&Path>,
    mut case: CaseRecheck<'_, '_>,
) -> Result<Vec<Warning>, String> {
    let before = known.clone();
    let doubts = verify_limits(record, over, known, &mut case);
    if *known != before {
        known.save(cache_path(kept, case.probe).as_deref());
    }
    doubts
}

fn verify_limits(
    record: &Record,
    over: &[Limit],
    known: &mut DevicePeaks,
    turns: &mut dyn ProbeComparer,
) -> Result<Vec<Warning>, String> {
    let mut doubts = Vec::new();
    let (memory, products): (Vec<Limit>, _) = over.iter().copied().partition(|&what| what == Limit::Memory);
    for over in [products, memory].into_iter().filter(|over| !over.is_empty()) {
        let found = match judge(|| turns.compare(&over)) {
            RecheckResult::Rejected(why) => return Err(why),
            RecheckResult::Plausible(found) => found,
            RecheckResult::Unclear(why) => {
                let peaks = over.iter().map(Limit::to_string).collect::<Vec<_>>().join(" and ");
                doubts.push(Warning::doubtful_rate(peaks, why));
                continue;
            }
        };
        match (found.limit, found.shape) {
            (Limit::Matmul(kind), Some(form)) => match turns.sustained_rate(kind, form) {
                Ok(sustained) => known.raise(kind, GemmPeak { burst: found.rate.max(sustained), sustained }),
                Err(why) => doubts.push(Warning::unsustained_peak(why)),
            },
            _ => known.raise_memory(found.rate),
        }
        if found.limit == Limit::Memory && !turns.shares_memory() {
            check_memory_rate(record, known.memory_gbps.unwrap_or(found.rate))?;
        }
    }
    Ok(doubts)
}

/// Checks the memory rate of a case against the peak. The case was slower interleaved with the probe, which evicts its
/// operands from the cache.
fn check_memory_rate(record: &Record, peak: f64) -> Result<(), String> {
    let slowest = record.time.time_ns.map(|time| time.hi.unwrap_or(time.median));
    let Some((bytes, nanos)) = record.case.bytes.zip(slowest) else { return Ok(()) };
    let percent = 100.0 * bytes as f64 / nanos / peak;
    if percent <= TOLERATED_PERCENT {
        return Ok(());
    }
    Err(format!(
        "{percent:.0} % of the measured memory bandwidth, and slower when interleaved with probes: operands were cached"
    ))
}

impl DevicePeaks {
    /// Measures memory and cache until they are consistent; returns true if there are new values.
    fn measure_memory(&mut self, probe: &mut PeakProbe<'_>) -> bool {
        const TIMES: u32 = 3;
        let mut cache = RateSamples::default();
        for _ in 0..TIMES {
            cache.extend_from(&probe.measure_cache().unwrap_or_default());
            match probe.measure_memory() {
                Ok(looks) => self.memory_looks.extend_from(&looks),
                Err(why) => {
                    self.record_failure(Limit::Memory, why);
                    return false;
                }
            }
            (self.memory_gbps, self.cache_gbps) = (self.memory_looks.peak(), cache.peak());
            if !(probe.shares_memory() && self.memory_exceeds_cache()) {
                return true;
            }
        }
        let (memory, cache) = (self.memory_gbps.take().unwrap_or_default(), self.cache_gbps.take().unwrap_or_default());
        self.memory_looks = RateSamples::default();
        let why = format!(
            "copies and reads reached {memory:.1} GB/s in memory but only {cache:.1} GB/s in the cache: \
             other processes use too much of this machine"
        );
        self.record_failure(Limit::Memory, why);
        false
    }

    fn save(&mut self, path: Option<&Path>) {
        self.measured = crate::host::now().to_rfc3339();
        if let Some(path) = path {
            cache::write(path, self);
        }
    }
}

fn cache_path(kept: Option<&Path>, probe: &PeakProbe<'_>) -> Option<std::path::PathBuf> {
    Some(kept?.join(format!("{}.json", cache::file_name(&probe.facts.identity))))
}

fn read_cached(path: Option<&Path>, probe: &PeakProbe<'_>) -> Result<Option<DevicePeaks>, String> {
    let Some(path) = path else { return Ok(None) };
    let same = |DevicePeaks { device, driver, policy, .. }: &DevicePeaks| {
        (device, driver, policy) == (&probe.facts.identity, &probe.facts.driver, &probe.policy)
    };
    Ok(read_file(path)?.filter(same).map(|peaks| peaks.without_distrusted_rates(probe.shares_memory())))
}

/// Reads peaks from a file; fails if a rate is impossible.
pub fn read_file(path: &Path) -> Result<Option<DevicePeaks>, String> {
    let peaks = cache::read::<DevicePeaks>(path)?;
    match peaks.as_ref().and_then(DevicePeaks::impossible_rate) {
        Some(rate) => Err(format!("{}: impossible rate {rate}", path.display())),
        None => Ok(peaks),
    }
}

#[cfg(test)]
mod tests {
    use super::recheck::ProbeComparison;
    use super::*;
    use calorimeter_case::record::{Estimate, Execution, PeakKind, Rates, RooflineBound, Rotation, Time};
    use calorimeter_case::{Device, WarningCode};
    use calorimeter_shapes::Shape;
    use calorimeter_sinks::{Case, Status};

    const CACHE: u64 = 50 << 20;
    const BF16: MatmulPrecision = MatmulPrecision::Bf16;
    const F32: MatmulPrecision = MatmulPrecision::F32;

    #[test]
    fn exceeded_peak_is_probed_again_once() {
        let mut peaks = peaks();
        let roof = |peaks: &DevicePeaks, tflops: f64| {
            roofline(&record((tflops * 1e12) as u64, 1 << 20, 1e9, 64), peaks, &[BF16], 1.0, CACHE).unwrap()
        };
        let (within, over) = (roof(&peaks, 640.0), roof(&peaks, 700.0));
        assert!(peaks.take_exceeded(&within, &[BF16]).is_empty());
        assert_eq!(peaks.take_exceeded(&over, &[BF16]), [BF16]);
        assert!(peaks.take_exceeded(&over, &[BF16]).is_empty());
    }

    fn peaks() -> DevicePeaks {
        let products = [(BF16, GemmPeak { burst: 800.0, sustained: 640.0 })].into();
        DevicePeaks { memory_gbps: Some(4000.0), cache_gbps: Some(9000.0), products, ..DevicePeaks::default() }
    }

    fn record(flops: u64, bytes: u64, nanos: f64, sets: u32) -> Record {
        let device = Device::Cuda(0);
        let case = Case { flops: Some(flops), bytes: Some(bytes), device, ..Case::default() };
        Record {
            time: Time { time_ns: Some(Estimate { median: nanos, lo: None, hi: None }), ..Time::default() },
            rates: Rates {
                tflops: Some(flops as f64 / nanos / 1e3),
                gbps: Some(bytes as f64 / nanos),
                ..Rates::default()
            },
            execution: Execution {
                rotation: Some(Rotation { sets, bytes, cache_bytes: Some(CACHE) }),
                ..Execution::default()
            },
            ..Record::new(case, Status::Ok)
        }
    }

    #[test]
    fn nearer_roof_binds() {
        // 1 GFLOP and 8 MB in 4 µs: 250 TFLOP/s of 640, 2000 GB/s of 4000.
        let memory = roofline(&record(1_000_000_000, 8_000_000, 4_000.0, 20), &peaks(), &[BF16], 1.0, CACHE).unwrap();
        assert_eq!((memory.bound.as_str(), memory.against, memory.percent), ("memory", Some(PeakKind::Burst), 50.0));
        assert_eq!(memory.compute_percent, Some(39.0625));
        let compute = roofline(&record(1_000_000_000, 8_000, 4_000.0, 20), &peaks(), &[BF16], 1.0, CACHE).unwrap();
        assert_eq!((compute.bound.as_str(), compute.against), ("compute", Some(PeakKind::Sustained)));
        assert_eq!((compute.peak_tflops, compute.burst_tflops), (Some(640.0), Some(800.0)));
        // Two sets of 8 MB stay in the cache.
        let cache = roofline(&record(1_000, 8_000_000, 4_000.0, 2), &peaks(), &[BF16], 1.0, CACHE).unwrap();
        assert_eq!((cache.bound.as_str(), cache.peak_gbps), ("cache", Some(9000.0)));
        // One much larger set does not fit.
        let large = Record {
            execution: Execution { rotation: None, ..record(1_000, 8 * CACHE, 4e6, 1).execution },
            ..record(1_000, 8 * CACHE, 4e6, 1)
        };
        assert_eq!(roofline(&large, &peaks(), &[BF16], 1.0, CACHE).unwrap().bound, RooflineBound::Memory);
    }

    #[test]
    fn unknown_peak_gives_no_percentage() {
        let roof = roofline(&record(1_000_000_000, 8_000_000, 4_000.0, 20), &peaks(), &[F32], 1.0, CACHE).unwrap();
        assert_eq!((roof.compute_percent, roof.bound.as_str()), (None, "memory"));
    }

    #[test]
    fn failed_peaks_are_reported_and_not_cached() {
        let mut peaks = DevicePeaks { memory_gbps: None, ..peaks() };
        peaks.record_failure(Limit::Matmul(F32), "no kernel".into());
        peaks.record_failure(Limit::Memory, "no buffer".into());
        assert_eq!(peaks.missing_peaks(&[BF16]), [Warning::missing_peak("memory", "no buffer")]);
        assert_eq!(peaks.missing_peaks(&[F32])[0], Warning::missing_peak("f32", "no kernel"));
        let kept: DevicePeaks = serde_json::from_value(serde_json::to_value(&peaks).unwrap()).unwrap();
        assert!(kept.failed.is_empty() && kept.products.len() == 1);
        let file = serde_json::to_value(&peaks).unwrap();
        assert_eq!(file["products"]["bf16"]["burst"], 800.0, "a file has the names of kinds");
        peaks.raise(BF16, GemmPeak { burst: 700.0, sustained: 650.0 });
        assert_eq!(peaks.products[&BF16], GemmPeak { burst: 800.0, sustained: 650.0 });
    }

    #[test]
    fn memory_faster_than_cache_is_rejected() {
        let looks: RateSamples = [61.0, 60.0, 24.0].into_iter().collect();
        let kept = DevicePeaks { memory_gbps: Some(61.0), cache_gbps: Some(16.7), memory_looks: looks, ..peaks() };
        assert!(kept.memory_exceeds_cache());
        let trusted = kept.clone().without_distrusted_rates(true);
        assert_eq!((trusted.memory_gbps, trusted.cache_gbps, trusted.products), (None, None, kept.products.clone()));
        assert_eq!(trusted.memory_looks, RateSamples::default(), "contradictory samples are dropped");
        // A dedicated device has caches and memory whose measurements are reliable.
        assert_eq!(kept.clone().without_distrusted_rates(false), kept);
        // The probe shows that memory is faster than the recorded cache rate, so the cache rate is dropped.
        let mut raised = DevicePeaks { memory_gbps: Some(10.0), cache_gbps: Some(16.7), ..peaks() };
        raised.raise_memory(20.0);
        assert_eq!((raised.memory_gbps, raised.cache_gbps), (Some(20.0), None));
    }

    #[test]
    fn unstable_shared_memory_peak_is_measured_again() {
        let with = |rates: &[f64]| DevicePeaks {
            memory_gbps: Some(30.0),
            cache_gbps: Some(90.0),
            memory_looks: rates.iter().copied().collect(),
            ..peaks()
        };
        let settled = with(&[29.0, 30.0]);
        assert_eq!(settled.clone().without_distrusted_rates(true), settled);
        for (rates, kept) in [(&[][..], 0), (&[15.0, 30.0], 2)] {
            let again = with(rates).without_distrusted_rates(true);
            assert_eq!((again.memory_gbps, again.cache_gbps), (None, None), "{rates:?}");
            assert_eq!(again.memory_looks.interval().is_some(), kept > 0, "the samples are kept");
        }
    }

    #[test]
    fn old_peak_files_are_measured_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        let mut file = serde_json::to_value(peaks()).unwrap();
        let products = file.as_object_mut().unwrap().remove("products").unwrap();
        cache::write(&path, &file);
        assert!(cache::read::<DevicePeaks>(&path).unwrap_err().contains("a.json: missing field `products`"));
        file["products"] = products;
        // Kind that only another version can probe.
        file["products"]["f4"] = file["products"]["bf16"].clone();
        cache::write(&path, &file);
        assert_eq!(cache::read::<DevicePeaks>(&path), Ok(Some(peaks())));
    }

    #[test]
    fn impossible_peaks_are_detected() {
        assert_eq!(peaks().impossible_rate(), None);
        for (key, value) in [("memory_gbps", 1e30), ("cache_gbps", -4.0), ("memory_gbps", 0.0)] {
            let mut file = serde_json::to_value(peaks()).unwrap();
            file[key] = value.into();
            assert!(serde_json::from_value::<DevicePeaks>(file).unwrap().impossible_rate().is_some(), "{key}");
        }
        let mut planted = peaks();
        planted.raise(BF16, GemmPeak { burst: 1e30, sustained: 1.0 });
        assert_eq!(planted.impossible_rate().unwrap(), format!("{} TFLOP/s of bf16", 1e30));
    }

    #[test]
    fn rates_above_a_peak_are_doubted() {
        let doubts = |record: Record| {
            let roof = roofline(&record, &peaks(), &[BF16], 1.0, CACHE).unwrap();
            exceeded_limits(&record, &roof, &[BF16], CACHE)
        };
        assert_eq!(doubts(record(10_000_000_000, 8_000_000, 10_000.0, 20)), [Limit::Matmul(BF16)]);
        assert_eq!(doubts(record(1_000, 50_000_000, 10_000.0, 20)), [Limit::Memory]);
        // Two sets of 1 MB stay in the cache, whose rate is not limited by the memory peak.
        assert!(doubts(record(1_000, 1_000_000, 100.0, 2)).is_empty());
        assert!(doubts(record(8_150_000_000, 8_000_000, 10_000.0, 20)).is_empty());
    }

    /// Probe with scripted results.
    struct ScriptedProbe {
        looks: Vec<Vec<ProbeComparison>>,
        sustained: f64,
        shares_memory: bool,
    }

    impl ProbeComparer for ScriptedProbe {
        fn compare(&mut self, _: &[Limit]) -> Result<Vec<ProbeComparison>, String> {
            if self.looks.is_empty() { Err("no sample remains".into()) } else { Ok(self.looks.remove(0)) }
        }

        fn sustained_rate(&mut self, _: MatmulPrecision, _: Shape) -> Result<f64, String> {
            Ok(self.sustained)
        }

        fn shares_memory(&self) -> bool {
            self.shares_memory
        }
    }

    fn scripted(limit: Limit, shares: &[f64], rate: f64) -> ScriptedProbe {
        let shape = Shape::new(64, 64, 64).ok().filter(|_| limit != Limit::Memory);
        let look = |&ratio: &f64| vec![ProbeComparison { limit, shape, ratio, lo: Some(ratio - 0.01), rate }];
        ScriptedProbe { looks: shares.iter().map(look).collect(), sustained: 700.0, shares_memory: false }
    }

    #[test]
    fn peak_is_raised_to_the_probe_rate() {
        // 1000 TFLOP/s at first, which no later sample confirms.
        let fast = record(10_000_000_000, 8_000_000, 10_000.0, 20);
        let mut known = peaks();
        assert_eq!(
            verify_limits(
                &fast,
                &[Limit::Matmul(BF16)],
                &mut known,
                &mut scripted(Limit::Matmul(BF16), &[0.97, 0.98], 820.0)
            ),
            Ok(vec![])
        );
        assert_eq!(known.products[&BF16], GemmPeak { burst: 820.0, sustained: 700.0 });
        // The next case is doubted like the first.
        let roof = roofline(&fast, &known, &[BF16], 1.0, CACHE).unwrap();
        assert_eq!(exceeded_limits(&fast, &roof, &[BF16], CACHE), [Limit::Matmul(BF16)]);
        // A probe slower than the peak changes nothing.
        assert_eq!(
            verify_limits(
                &fast,
                &[Limit::Matmul(BF16)],
                &mut known,
                &mut scripted(Limit::Matmul(BF16), &[0.97, 0.98], 500.0)
            ),
            Ok(vec![])
        );
        assert_eq!(known.products[&BF16], GemmPeak { burst: 820.0, sustained: 700.0 });
    }

    #[test]
    fn inconsistent_samples_change_no_peak() {
        let fast = record(10_000_000_000, 8_000_000, 10_000.0, 20);
        let mut known = peaks();
        let mut apart = scripted(Limit::Matmul(BF16), &[1.1, 1.3, 1.5, 1.7], 900.0);
        let doubts = verify_limits(&fast, &[Limit::Matmul(BF16)], &mut known, &mut apart).unwrap();
        assert_eq!(doubts[0].code, WarningCode::DoubtfulRate, "{doubts:?}");
        assert_eq!(known, peaks());
    }

    #[test]
    fn case_above_every_probe_is_refused() {
        let fast = record(10_000_000_000, 8_000_000, 10_000.0, 20);
        let mut known = peaks();
        let refused = verify_limits(
            &fast,
            &[Limit::Matmul(BF16)],
            &mut known,
            &mut scripted(Limit::Matmul(BF16), &[1.05, 1.06], 950.0),
        )
        .unwrap_err();
        assert!(refused.starts_with("106 % of the interleaved rate of the fastest of several matmuls"), "{refused}");
        let refused =
            verify_limits(&fast, &[Limit::Memory], &mut known, &mut scripted(Limit::Memory, &[2.0, 2.0], 4100.0))
                .unwrap_err();
        assert!(refused.starts_with("200 % of the interleaved rate of memory copies and reads"), "{refused}");
        assert_eq!(known, peaks());
    }

    #[test]
    fn cached_gpu_operands_are_detected() {
        let over = |nanos| {
            let mut known = peaks();
            let mut probe = scripted(Limit::Memory, &[0.8, 0.8], 4100.0);
            let refused =
                verify_limits(&record(1_000, 50_000_000, nanos, 20), &[Limit::Memory], &mut known, &mut probe).err();
            (refused, known.memory_gbps)
        };
        let (refused, raised) = over(10_000.0);
        assert!(refused.unwrap().starts_with("122 % of the measured memory bandwidth"));
        assert_eq!((over(12_000.0), raised), ((None, Some(4100.0)), Some(4100.0)));
        // Memory shared with other processes may have been free for a moment.
        let mut shared = ScriptedProbe { shares_memory: true, ..scripted(Limit::Memory, &[0.8, 0.8], 4100.0) };
        let fast = record(1_000, 50_000_000, 10_000.0, 20);
        assert_eq!(verify_limits(&fast, &[Limit::Memory], &mut peaks(), &mut shared), Ok(vec![]));
    }
}
