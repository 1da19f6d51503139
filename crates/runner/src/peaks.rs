//! Peaks of a device, measured by probes: the roofline that times are compared with.

mod forms;
mod kinds;
mod known;
mod limit;
mod looks;
mod place;
mod probe;
mod second_look;

pub use forms::own as form;
pub use kinds::kinds;
pub use known::Peaks;
use known::{Peak, TOLERATED_PERCENT};
pub use limit::{Limit, ProductKind};
use looks::Looks;
pub use place::{doubtful, place};
pub use probe::{Beside, Probe};
use second_look::{Judgment, Turns, judge};

use crate::cache;
use calorimeter_case::record::Roofline;
use calorimeter_sinks::Record;
use std::path::Path;

/// Returns the peaks of memory and of the given kinds of GEMM. They are loaded from an earlier run if device, driver
/// and clock settings match, and otherwise measured. `None` on the mock device.
pub fn of(
    kinds: &[ProductKind],
    known: &mut Option<Peaks>,
    kept: Option<&Path>,
    probe: &mut Probe<'_>,
) -> Option<Peaks> {
    if !probe.can() {
        return None;
    }
    let path = path(kept, probe);
    let peaks = known.get_or_insert_with(|| match read(path.as_deref(), probe) {
        Ok(kept) => kept.unwrap_or_else(|| probe.nothing()),
        Err(why) => Peaks { refused: Some(format!("cached peaks are ignored: {why}")), ..probe.nothing() },
    });
    let mut new = false;
    if peaks.memory_gbps.is_none() && !peaks.failed.contains_key(&Limit::Memory) {
        new |= peaks.look_at_memory(probe);
    }
    for &kind in kinds {
        let limit = Limit::Products(kind);
        if !peaks.products.contains_key(&kind) && !peaks.failed.contains_key(&limit) {
            match probe.products(kind) {
                Ok(peak) => {
                    peaks.raise(kind, peak);
                    new = true;
                }
                Err(why) => peaks.fail(limit, why),
            }
        }
    }
    if new {
        peaks.save(path.as_deref());
    }
    let result = peaks.clone();
    peaks.refused = None;
    Some(result)
}

/// Measures GEMM peaks again that a case exceeded; returns the failures. This applies only to devices with shared
/// memory, where other processes may have disturbed the probe.
pub fn settle(
    roof: &Roofline,
    kinds: &[ProductKind],
    peaks: &mut Peaks,
    kept: Option<&Path>,
    probe: &mut Probe<'_>,
) -> Vec<String> {
    let outdone = if probe.shares_memory() { peaks.outdone(roof, kinds) } else { Vec::new() };
    let mut failed = Vec::new();
    for &kind in &outdone {
        match probe.products(kind) {
            Ok(peak) => peaks.raise(kind, peak),
            Err(why) => {
                failed.push(format!("faster than the peak of {kind}, which could not be measured again: {why}"))
            }
        }
    }
    if !outdone.is_empty() {
        peaks.save(path(kept, probe).as_deref());
    }
    failed
}

/// Measures a case again that is faster than a peak, interleaved with probes of its own size. The device may have been
/// slower when the peak was measured, or another GEMM shape may be faster. The peak is then raised to the rate of the
/// probe, never to that of the case. Returns warnings, or as an error the reason why the time is implausible.
pub fn again(
    record: &Record,
    over: &[Limit],
    known: &mut Peaks,
    kept: Option<&Path>,
    mut case: Beside<'_, '_>,
) -> Result<Vec<String>, String> {
    let before = known.clone();
    let doubts = looked_at(record, over, known, &mut case);
    if *known != before {
        known.save(path(kept, case.probe).as_deref());
    }
    doubts
}

fn looked_at(record: &Record, over: &[Limit], known: &mut Peaks, turns: &mut dyn Turns) -> Result<Vec<String>, String> {
    let mut doubts = Vec::new();
    let (memory, products): (Vec<Limit>, _) = over.iter().copied().partition(|&what| what == Limit::Memory);
    for over in [products, memory].into_iter().filter(|over| !over.is_empty()) {
        let found = match judge(|| turns.look(&over)) {
            Judgment::Refused(why) => return Err(why),
            Judgment::Possible(found) => found,
            Judgment::Unclear(why) => {
                let peaks = over.iter().map(Limit::to_string).collect::<Vec<_>>().join(" and ");
                doubts.push(format!("rate above the measured peak of {peaks}, possibly wrong: {why}"));
                continue;
            }
        };
        match (found.what, found.form) {
            (Limit::Products(kind), Some(form)) => match turns.sustained(kind, form) {
                Ok(sustained) => known.raise(kind, Peak { burst: found.rate.max(sustained), sustained }),
                Err(why) => doubts.push(format!("a matmul faster than the peak could not be sustained: {why}")),
            },
            _ => known.raise_memory(found.rate),
        }
        if found.what == Limit::Memory && !turns.shares_memory() {
            repeated(record, known.memory_gbps.unwrap_or(found.rate))?;
        }
    }
    Ok(doubts)
}

/// Checks the memory rate of a case against the peak. The case was slower interleaved with the probe, which evicts its
/// operands from the cache.
fn repeated(record: &Record, peak: f64) -> Result<(), String> {
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

impl Peaks {
    /// Measures memory and cache until they are consistent; returns true if there are new values.
    fn look_at_memory(&mut self, probe: &mut Probe<'_>) -> bool {
        const TIMES: u32 = 3;
        let mut cache = Looks::default();
        for _ in 0..TIMES {
            cache.join(&probe.cache().unwrap_or_default());
            match probe.memory() {
                Ok(looks) => self.memory_looks.join(&looks),
                Err(why) => {
                    self.fail(Limit::Memory, why);
                    return false;
                }
            }
            (self.memory_gbps, self.cache_gbps) = (self.memory_looks.peak(), cache.peak());
            if !(probe.shares_memory() && self.contradict()) {
                return true;
            }
        }
        let (memory, cache) = (self.memory_gbps.take().unwrap_or_default(), self.cache_gbps.take().unwrap_or_default());
        self.memory_looks = Looks::default();
        let why = format!(
            "copies and reads reached {memory:.1} GB/s in memory but only {cache:.1} GB/s in the cache: \
             other processes use too much of this machine"
        );
        self.fail(Limit::Memory, why);
        false
    }

    fn save(&mut self, path: Option<&Path>) {
        self.measured = crate::host::now().to_rfc3339();
        if let Some(path) = path {
            cache::keep(path, self);
        }
    }
}

fn path(kept: Option<&Path>, probe: &Probe<'_>) -> Option<std::path::PathBuf> {
    Some(kept?.join(format!("{}.json", cache::file_name(&probe.told.identity))))
}

fn read(path: Option<&Path>, probe: &Probe<'_>) -> Result<Option<Peaks>, String> {
    let Some(path) = path else { return Ok(None) };
    let same = |Peaks { device, driver, policy, .. }: &Peaks| {
        (device, driver, policy) == (&probe.told.identity, &probe.told.driver, &probe.policy)
    };
    Ok(kept(path)?.filter(same).map(|peaks| peaks.trusted(probe.shares_memory())))
}

/// Reads peaks from a file; fails if a rate is impossible.
pub fn kept(path: &Path) -> Result<Option<Peaks>, String> {
    let peaks = cache::read::<Peaks>(path)?;
    match peaks.as_ref().and_then(Peaks::impossible) {
        Some(rate) => Err(format!("{}: impossible rate {rate}", path.display())),
        None => Ok(peaks),
    }
}

#[cfg(test)]
mod tests {
    use super::second_look::Share;
    use super::*;
    use calorimeter_case::Device;
    use calorimeter_case::record::{Against, Estimate, Execution, Rates, Roof, Rotation, Time};
    use calorimeter_shapes::Shape;
    use calorimeter_sinks::{Case, Status};

    const CACHE: u64 = 50 << 20;
    const BF16: ProductKind = ProductKind::Bf16;
    const F32: ProductKind = ProductKind::F32;

    #[test]
    fn a_peak_that_a_case_outdoes_is_probed_again_once() {
        let mut peaks = peaks();
        let roof = |peaks: &Peaks, tflops: f64| {
            place(&record((tflops * 1e12) as u64, 1 << 20, 1e9, 64), peaks, &[BF16], 1.0, CACHE).unwrap()
        };
        let (within, over) = (roof(&peaks, 640.0), roof(&peaks, 700.0));
        assert!(peaks.outdone(&within, &[BF16]).is_empty());
        assert_eq!(peaks.outdone(&over, &[BF16]), [BF16]);
        assert!(peaks.outdone(&over, &[BF16]).is_empty());
    }

    fn peaks() -> Peaks {
        let products = [(BF16, Peak { burst: 800.0, sustained: 640.0 })].into();
        Peaks { memory_gbps: Some(4000.0), cache_gbps: Some(9000.0), products, ..Peaks::default() }
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
    fn the_nearer_roof_binds() {
        // 1 GFLOP and 8 MB in 4 µs: 250 TFLOP/s of 640, 2000 GB/s of 4000.
        let memory = place(&record(1_000_000_000, 8_000_000, 4_000.0, 20), &peaks(), &[BF16], 1.0, CACHE).unwrap();
        assert_eq!((memory.bound.as_str(), memory.against, memory.percent), ("memory", Some(Against::Burst), 50.0));
        assert_eq!(memory.compute_percent, Some(39.0625));
        let compute = place(&record(1_000_000_000, 8_000, 4_000.0, 20), &peaks(), &[BF16], 1.0, CACHE).unwrap();
        assert_eq!((compute.bound.as_str(), compute.against), ("compute", Some(Against::Sustained)));
        assert_eq!((compute.peak_tflops, compute.burst_tflops), (Some(640.0), Some(800.0)));
        // Two sets of 8 MB stay in the cache.
        let cache = place(&record(1_000, 8_000_000, 4_000.0, 2), &peaks(), &[BF16], 1.0, CACHE).unwrap();
        assert_eq!((cache.bound.as_str(), cache.peak_gbps), ("cache", Some(9000.0)));
        // One much larger set does not fit.
        let large = Record {
            execution: Execution { rotation: None, ..record(1_000, 8 * CACHE, 4e6, 1).execution },
            ..record(1_000, 8 * CACHE, 4e6, 1)
        };
        assert_eq!(place(&large, &peaks(), &[BF16], 1.0, CACHE).unwrap().bound, Roof::Memory);
    }

    #[test]
    fn a_peak_that_is_not_known_gives_no_percentage() {
        let roof = place(&record(1_000_000_000, 8_000_000, 4_000.0, 20), &peaks(), &[F32], 1.0, CACHE).unwrap();
        assert_eq!((roof.compute_percent, roof.bound.as_str()), (None, "memory"));
    }

    #[test]
    fn what_could_not_be_measured_is_told_and_not_kept() {
        let mut peaks = Peaks { memory_gbps: None, ..peaks() };
        peaks.fail(Limit::Products(F32), "no kernel".into());
        peaks.fail(Limit::Memory, "no buffer".into());
        assert_eq!(peaks.missing(&[BF16]), ["cannot measure the peak of memory: no buffer"]);
        assert_eq!(peaks.missing(&[F32])[0], "cannot measure the peak of f32: no kernel");
        let kept: Peaks = serde_json::from_value(serde_json::to_value(&peaks).unwrap()).unwrap();
        assert!(kept.failed.is_empty() && kept.products.len() == 1);
        let file = serde_json::to_value(&peaks).unwrap();
        assert_eq!(file["products"]["bf16"]["burst"], 800.0, "a file has the names of kinds");
        peaks.raise(BF16, Peak { burst: 700.0, sustained: 650.0 });
        assert_eq!(peaks.products[&BF16], Peak { burst: 800.0, sustained: 650.0 });
    }

    #[test]
    fn memory_that_is_faster_than_the_cache_is_not_believed() {
        let looks: Looks = [61.0, 60.0, 24.0].into_iter().collect();
        let kept = Peaks { memory_gbps: Some(61.0), cache_gbps: Some(16.7), memory_looks: looks, ..peaks() };
        assert!(kept.contradict());
        let trusted = kept.clone().trusted(true);
        assert_eq!((trusted.memory_gbps, trusted.cache_gbps, trusted.products), (None, None, kept.products.clone()));
        assert_eq!(trusted.memory_looks, Looks::default(), "contradictory samples are dropped");
        // A dedicated device has caches and memory whose measurements are reliable.
        assert_eq!(kept.clone().trusted(false), kept);
        // The probe shows that memory is faster than the recorded cache rate, so the cache rate is dropped.
        let mut raised = Peaks { memory_gbps: Some(10.0), cache_gbps: Some(16.7), ..peaks() };
        raised.raise_memory(20.0);
        assert_eq!((raised.memory_gbps, raised.cache_gbps), (Some(20.0), None));
    }

    #[test]
    fn a_peak_of_shared_memory_is_measured_again_while_its_looks_lie_apart_and_may_come_down() {
        let with = |rates: &[f64]| Peaks {
            memory_gbps: Some(30.0),
            cache_gbps: Some(90.0),
            memory_looks: rates.iter().copied().collect(),
            ..peaks()
        };
        let settled = with(&[29.0, 30.0]);
        assert_eq!(settled.clone().trusted(true), settled);
        for (rates, kept) in [(&[][..], 0), (&[15.0, 30.0], 2)] {
            let again = with(rates).trusted(true);
            assert_eq!((again.memory_gbps, again.cache_gbps), (None, None), "{rates:?}");
            assert_eq!(again.memory_looks.interval().is_some(), kept > 0, "the samples are kept");
        }
    }

    #[test]
    fn peaks_of_a_version_that_had_one_for_each_kind_are_measured_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        let mut file = serde_json::to_value(peaks()).unwrap();
        let products = file.as_object_mut().unwrap().remove("products").unwrap();
        cache::keep(&path, &file);
        assert!(cache::read::<Peaks>(&path).unwrap_err().contains("a.json: missing field `products`"));
        file["products"] = products;
        // Kind that only another version can probe.
        file["products"]["f4"] = file["products"]["bf16"].clone();
        cache::keep(&path, &file);
        assert_eq!(cache::read::<Peaks>(&path), Ok(Some(peaks())));
    }

    #[test]
    fn a_peak_that_no_device_reaches_is_found() {
        assert_eq!(peaks().impossible(), None);
        for (key, value) in [("memory_gbps", 1e30), ("cache_gbps", -4.0), ("memory_gbps", 0.0)] {
            let mut file = serde_json::to_value(peaks()).unwrap();
            file[key] = value.into();
            assert!(serde_json::from_value::<Peaks>(file).unwrap().impossible().is_some(), "{key}");
        }
        let mut planted = peaks();
        planted.raise(BF16, Peak { burst: 1e30, sustained: 1.0 });
        assert_eq!(planted.impossible().unwrap(), format!("{} TFLOP/s of bf16", 1e30));
    }

    #[test]
    fn what_is_faster_than_a_peak_is_doubted_and_what_comes_from_a_cache_is_not() {
        let doubts = |record: Record| {
            let roof = place(&record, &peaks(), &[BF16], 1.0, CACHE).unwrap();
            doubtful(&record, &roof, &[BF16], CACHE)
        };
        assert_eq!(doubts(record(10_000_000_000, 8_000_000, 10_000.0, 20)), [Limit::Products(BF16)]);
        assert_eq!(doubts(record(1_000, 50_000_000, 10_000.0, 20)), [Limit::Memory]);
        // Two sets of 1 MB stay in the cache, whose rate is not limited by the memory peak.
        assert!(doubts(record(1_000, 1_000_000, 100.0, 2)).is_empty());
        assert!(doubts(record(8_150_000_000, 8_000_000, 10_000.0, 20)).is_empty());
    }

    /// Probe with scripted results.
    struct Scripted {
        looks: Vec<Vec<Share>>,
        sustained: f64,
        shares_memory: bool,
    }

    impl Turns for Scripted {
        fn look(&mut self, _: &[Limit]) -> Result<Vec<Share>, String> {
            if self.looks.is_empty() { Err("no sample remains".into()) } else { Ok(self.looks.remove(0)) }
        }

        fn sustained(&mut self, _: ProductKind, _: Shape) -> Result<f64, String> {
            Ok(self.sustained)
        }

        fn shares_memory(&self) -> bool {
            self.shares_memory
        }
    }

    fn looks(what: Limit, shares: &[f64], rate: f64) -> Scripted {
        let form = Shape::new(64, 64, 64).ok().filter(|_| what != Limit::Memory);
        let look = |&middle: &f64| vec![Share { what, form, middle, lo: Some(middle - 0.01), rate }];
        Scripted { looks: shares.iter().map(look).collect(), sustained: 700.0, shares_memory: false }
    }

    #[test]
    fn what_is_kept_after_a_second_look_is_the_rate_of_the_probe() {
        // 1000 TFLOP/s at first, which no later sample confirms.
        let fast = record(10_000_000_000, 8_000_000, 10_000.0, 20);
        let mut known = peaks();
        assert_eq!(
            looked_at(
                &fast,
                &[Limit::Products(BF16)],
                &mut known,
                &mut looks(Limit::Products(BF16), &[0.97, 0.98], 820.0)
            ),
            Ok(vec![])
        );
        assert_eq!(known.products[&BF16], Peak { burst: 820.0, sustained: 700.0 });
        // The next case is doubted like the first.
        let roof = place(&fast, &known, &[BF16], 1.0, CACHE).unwrap();
        assert_eq!(doubtful(&fast, &roof, &[BF16], CACHE), [Limit::Products(BF16)]);
        // A probe slower than the peak changes nothing.
        assert_eq!(
            looked_at(
                &fast,
                &[Limit::Products(BF16)],
                &mut known,
                &mut looks(Limit::Products(BF16), &[0.97, 0.98], 500.0)
            ),
            Ok(vec![])
        );
        assert_eq!(known.products[&BF16], Peak { burst: 820.0, sustained: 700.0 });
    }

    #[test]
    fn looks_that_disagree_refuse_and_raise_nothing() {
        let fast = record(10_000_000_000, 8_000_000, 10_000.0, 20);
        let mut known = peaks();
        let mut apart = looks(Limit::Products(BF16), &[1.1, 1.3, 1.5, 1.7], 900.0);
        let doubts = looked_at(&fast, &[Limit::Products(BF16)], &mut known, &mut apart).unwrap();
        assert!(doubts[0].starts_with("rate above the measured peak of bf16, possibly wrong"), "{doubts:?}");
        assert_eq!(known, peaks());
    }

    #[test]
    fn what_is_faster_than_every_probe_is_refused_and_raises_nothing() {
        let fast = record(10_000_000_000, 8_000_000, 10_000.0, 20);
        let mut known = peaks();
        let refused = looked_at(
            &fast,
            &[Limit::Products(BF16)],
            &mut known,
            &mut looks(Limit::Products(BF16), &[1.05, 1.06], 950.0),
        )
        .unwrap_err();
        assert!(refused.starts_with("106 % of the interleaved rate of the fastest of several matmuls"), "{refused}");
        let refused =
            looked_at(&fast, &[Limit::Memory], &mut known, &mut looks(Limit::Memory, &[2.0, 2.0], 4100.0)).unwrap_err();
        assert!(refused.starts_with("200 % of the interleaved rate of memory copies and reads"), "{refused}");
        assert_eq!(known, peaks());
    }

    #[test]
    fn a_cache_that_held_the_operands_of_a_gpu_is_found_by_leaving_nothing_in_it() {
        let over = |nanos| {
            let mut known = peaks();
            let mut probe = looks(Limit::Memory, &[0.8, 0.8], 4100.0);
            let refused =
                looked_at(&record(1_000, 50_000_000, nanos, 20), &[Limit::Memory], &mut known, &mut probe).err();
            (refused, known.memory_gbps)
        };
        let (refused, raised) = over(10_000.0);
        assert!(refused.unwrap().starts_with("122 % of the measured memory bandwidth"));
        assert_eq!((over(12_000.0), raised), ((None, Some(4100.0)), Some(4100.0)));
        // Memory shared with other processes may have been free for a moment.
        let mut shared = Scripted { shares_memory: true, ..looks(Limit::Memory, &[0.8, 0.8], 4100.0) };
        let fast = record(1_000, 50_000_000, 10_000.0, 20);
        assert_eq!(looked_at(&fast, &[Limit::Memory], &mut peaks(), &mut shared), Ok(vec![]));
    }
}
