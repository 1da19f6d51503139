//! The most that a device reaches, measured by probes of our own: the roof that times are held against.

mod forms;
mod kinds;
mod looks;
mod probe;

pub use kinds::kinds;
use looks::Looks;
pub use probe::{Beside, Probe, Share};

use crate::cache;
use calorimeter_case::record::Roofline;
use calorimeter_sinks::Record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

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
    /// What each look at memory reached, the lowest first: their ends are the interval of the peak.
    #[serde(default)]
    pub memory_looks: Looks,
    /// Matrix products by their kind of number, in 10¹² operations per second.
    pub tflops: BTreeMap<String, f64>,
    /// What could not be measured in this process, and why: it is not tried again here, but in the next run.
    #[serde(skip)]
    pub failed: BTreeMap<String, String>,
}

/// What can be over a peak by noise alone.
const TOLERATED_PERCENT: f64 = 102.0;
/// The peaks of memory and of products of some kinds: those of an earlier run where the device, its driver and its clocks
/// are the same, or measured now. None on the mock device.
pub fn of(kinds: &[&str], known: &mut Option<Peaks>, kept: Option<&Path>, probe: &mut Probe<'_>) -> Option<Peaks> {
    if !probe.can() {
        return None;
    }
    let path = path(kept, probe);
    let peaks = known.get_or_insert_with(|| read(path.as_deref(), probe).unwrap_or_else(|| probe.nothing()));
    let mut new = false;
    if peaks.memory_gbps.is_none() && !peaks.failed.contains_key(MEMORY) {
        new |= peaks.look_at_memory(probe);
    }
    for &kind in kinds {
        if !peaks.tflops.contains_key(kind) && !peaks.failed.contains_key(kind) {
            new |= peaks.noted(kind, probe.products(kind));
        }
    }
    if new {
        peaks.save(path.as_deref());
    }
    Some(peaks.clone())
}

/// Measures a case again that is faster than a peak, in turns with probes as large as itself: the device may have been
/// slower when its peak was measured. The probe that comes nearest to the case raises the peak; where the case is faster
/// than all of them too, that is told.
pub fn again(
    record: &Record,
    over: &[&str],
    known: &mut Peaks,
    kept: Option<&Path>,
    probe: &mut Probe<'_>,
    case: &mut Beside<'_>,
) -> Result<(), String> {
    for memory in [false, true] {
        let over = || over.iter().copied().filter(|&what| (what == MEMORY) == memory);
        let look = || over().map(|what| (what, probe.beside(what, case))).collect();
        let Some((what, share)) = settled(look)? else { continue };
        let rate = if memory { record.rates.gbps } else { record.rates.tflops.map(|rate| rate * case.share) };
        let rate = rate.ok_or("it has no rate")?;
        if memory {
            // In turns the case was no faster than the probe, so what each of them reached is no more than the peak.
            known.noted(what, Ok(if probe.shares_memory() { share.probe.max(rate) } else { share.probe }));
            repeated(rate, known.memory_gbps.unwrap_or(share.probe))?;
        } else {
            // What is over the probe by noise alone is no more than it.
            known.noted(what, Ok(rate / share.middle.min(1.0)));
        }
    }
    known.save(path(kept, probe).as_deref());
    Ok(())
}

/// Whether a rate is possible, although the case was slower in turns with the probe, which leaves it nothing in the cache.
fn repeated(rate: f64, peak: f64) -> Result<(), String> {
    let percent = 100.0 * rate / peak;
    if percent <= TOLERATED_PERCENT {
        return Ok(());
    }
    Err(format!(
        "{percent:.0} % of what copies and reads of memory reach, and slower in turns with them: a cache held its operands"
    ))
}

/// Looks until the case is seen not to be faster than its probe; one that never is so seen is no result.
fn settled<'a>(
    mut look: impl FnMut() -> Vec<(&'a str, Result<Share, String>)>,
) -> Result<Option<(&'a str, Share)>, String> {
    const LOOKS: u32 = 3;
    let mut looked = 0;
    loop {
        looked += 1;
        match nearest(look())? {
            Some((what, share)) if 100.0 * share.middle > TOLERATED_PERCENT => {
                if looked == LOOKS {
                    return Err(faster(what, share));
                }
            }
            settled => return Ok(settled),
        }
    }
}

fn faster(what: &str, share: Share) -> String {
    let probe = if what == MEMORY { "copies and reads of memory" } else { "a product of as many operations" };
    let percent = 100.0 * share.middle;
    format!("{percent:.0} % of what {probe} reached in turns with it; work was miscounted, cached or left out")
}

/// The look at which the case comes out slowest, with the share of the probe's rate that it reaches; or why it is no
/// result.
fn nearest(looks: Vec<(&str, Result<Share, String>)>) -> Result<Option<(&str, Share)>, String> {
    let mut least: Option<(&str, Share)> = None;
    let mut failed = None;
    for (what, look) in looks {
        match look {
            Ok(share) if least.is_none_or(|(_, least)| share.lo < least.lo) => least = Some((what, share)),
            Ok(_) => {}
            Err(why) => {
                failed = Some(format!(
                    "its rate is more than the measured peak of {what}, and could not be \
                measured again beside it: {why}"
                ))
            }
        }
    }
    match (least, failed) {
        (Some((what, share)), _) if 100.0 * share.lo > TOLERATED_PERCENT => Err(faster(what, share)),
        (Some(nearest), _) => Ok(Some(nearest)),
        (None, Some(why)) => Err(why),
        (None, None) => Ok(None),
    }
}

/// What the peak of memory is called among those of products.
pub const MEMORY: &str = "memory";

impl Peaks {
    /// Looks at memory and at the cache until they do not contradict each other; answers whether there is something new.
    fn look_at_memory(&mut self, probe: &mut Probe<'_>) -> bool {
        const TIMES: u32 = 3;
        let mut cache = Looks::default();
        for _ in 0..TIMES {
            cache.join(&probe.cache().unwrap_or_default());
            match probe.memory() {
                Ok(looks) => self.memory_looks.join(&looks),
                Err(why) => return self.noted(MEMORY, Err(why)),
            }
            (self.memory_gbps, self.cache_gbps) = (self.memory_looks.peak(), cache.peak());
            if !(probe.shares_memory() && self.contradict()) {
                return true;
            }
        }
        let (memory, cache) = (self.memory_gbps.take().unwrap_or_default(), self.cache_gbps.take().unwrap_or_default());
        self.memory_looks = Looks::default();
        let why = format!(
            "copies and reads reached {memory:.1} GB/s in memory and {cache:.1} GB/s in the cache, which is never slower: \
             others use this machine too much"
        );
        self.noted(MEMORY, Err(why))
    }

    /// Whether memory came out faster than the cache before it, so that one of the two is wrong.
    fn contradict(&self) -> bool {
        let (Some(memory), Some(cache)) = (self.memory_gbps, self.cache_gbps) else { return false };
        100.0 * memory > TOLERATED_PERCENT * cache
    }

    /// The same without what is not to be trusted on a device whose memory others use: figures that contradict each other,
    /// and such of a single look. Looks that lie far apart stay, and are joined by others.
    fn trusted(mut self, shares_memory: bool) -> Self {
        let single = self.memory_looks == Looks::default();
        if shares_memory && (single || self.contradict() || self.memory_looks.are_unsettled()) {
            if self.contradict() {
                self.memory_looks = Looks::default();
            }
            (self.memory_gbps, self.cache_gbps) = (None, None);
        }
        self
    }

    /// Takes a figure if it is higher than the known one, or why there is none; answers whether there is something new.
    fn noted(&mut self, what: &str, figure: Result<f64, String>) -> bool {
        match figure {
            Ok(figure) if what == MEMORY => {
                self.memory_gbps = self.memory_gbps.into_iter().chain([figure]).reduce(f64::max);
                // The cache is at least as fast, so a lower figure of it was too low.
                self.cache_gbps = self.cache_gbps.filter(|_| !self.contradict());
            }
            Ok(figure) => {
                let known = self.tflops.entry(what.to_owned()).or_insert(figure);
                *known = known.max(figure);
            }
            Err(why) => {
                self.failed.insert(what.to_owned(), why);
                return false;
            }
        }
        true
    }

    fn save(&mut self, path: Option<&Path>) {
        self.measured = crate::run::now().to_rfc3339();
        if let Some(path) = path {
            cache::keep(path, self);
        }
    }

    /// What is missing for a case whose products are of these kinds, in words.
    pub fn missing(&self, kinds: &[&str]) -> Vec<String> {
        let compute = !kinds.is_empty() && !kinds.iter().any(|&kind| self.tflops.contains_key(kind));
        let wanted = kinds.iter().filter(|_| compute).copied().chain(self.memory_gbps.is_none().then_some(MEMORY));
        let why = |what| self.failed.get(what).map(|why| format!("the peak of {what} could not be measured: {why}"));
        wanted.filter_map(why).collect()
    }
}

fn path(kept: Option<&Path>, probe: &Probe<'_>) -> Option<std::path::PathBuf> {
    Some(kept?.join(format!("{}.json", cache::file_name(&probe.told.identity))))
}

fn read(path: Option<&Path>, probe: &Probe<'_>) -> Option<Peaks> {
    let peaks: Peaks = cache::read(path?)?;
    let Peaks { device, driver, policy, .. } = &peaks;
    let same = (device, driver, policy) == (&probe.told.identity, &probe.told.driver, &probe.policy);
    same.then(|| peaks.trusted(probe.shares_memory()))
}

/// Where a case stands against the peak of its kinds of number, and that of memory or cache.
/// `share` of the operations that the case counts are really done.
pub fn place(record: &Record, peaks: &Peaks, kinds: &[&str], share: f64, cache_bytes: u64) -> Option<Roofline> {
    let nanos = record.time.time_ns?.median;
    if !record.case.regime.clock().is_the_devices() {
        return None;
    }
    let peak_tflops = kinds.iter().filter_map(|&kind| peaks.tflops.get(kind).copied()).reduce(f64::max);
    let cold = comes_from_memory(record, cache_bytes);
    let peak_gbps = if cold { peaks.memory_gbps } else { peaks.cache_gbps.or(peaks.memory_gbps) };
    let percent = |rate: Option<f64>, peak: Option<f64>| Some(100.0 * rate? / peak?);
    let compute_percent = percent(record.case.flops.map(|flops| flops as f64 * share / nanos / 1e3), peak_tflops);
    let memory_percent = percent(record.case.bytes.map(|bytes| bytes as f64 / nanos), peak_gbps);
    let storage = if cold || peaks.cache_gbps.is_none() { "memory" } else { "cache" };
    let (bound, percent) = match (compute_percent, memory_percent) {
        (Some(compute), Some(memory)) if compute >= memory => ("compute", compute),
        (Some(compute), None) => ("compute", compute),
        (_, Some(memory)) => (storage, memory),
        (None, None) => return None,
    };
    Some(Roofline { bound: bound.into(), percent, compute_percent, memory_percent, peak_tflops, peak_gbps })
}

/// Whether the operands of each launch come from memory and not from a cache: the sets exceed it together, or one of them
/// by far.
fn comes_from_memory(record: &Record, cache_bytes: u64) -> bool {
    match record.execution.rotation {
        Some(rotation) => u64::from(rotation.sets) * rotation.bytes >= rotation.cache_bytes.unwrap_or(cache_bytes),
        None => record.case.bytes.is_some_and(|bytes| bytes >= 4 * cache_bytes),
    }
}

/// What of a case is faster than a device was seen to be. The cache has no such limit: smaller and faster ones stand
/// before it.
pub fn doubtful<'a>(record: &Record, roof: &Roofline, kinds: &[&'a str], cache_bytes: u64) -> Vec<&'a str> {
    let over = |percent: Option<f64>| percent.is_some_and(|percent| percent > TOLERATED_PERCENT);
    let mut doubtful = if over(roof.compute_percent) { kinds.to_vec() } else { Vec::new() };
    if over(roof.memory_percent) && comes_from_memory(record, cache_bytes) {
        doubtful.push(MEMORY);
    }
    doubtful
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::Device;
    use calorimeter_case::record::{Estimate, Rotation};
    use calorimeter_case::record::{Execution, Rates, Time};
    use calorimeter_sinks::{Case, Status};

    const CACHE: u64 = 50 << 20;

    fn peaks() -> Peaks {
        let tflops = [("bf16".to_owned(), 800.0)].into();
        Peaks { memory_gbps: Some(4000.0), cache_gbps: Some(9000.0), tflops, ..Peaks::default() }
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
        // 1 GFLOP and 8 MB in 4 µs: 250 TFLOP/s of 800, 2000 GB/s of 4000.
        let memory = place(&record(1_000_000_000, 8_000_000, 4_000.0, 20), &peaks(), &["bf16"], 1.0, CACHE).unwrap();
        assert_eq!((memory.bound.as_str(), memory.percent), ("memory", 50.0));
        assert_eq!(memory.compute_percent, Some(31.25));
        let compute = place(&record(1_000_000_000, 8_000, 4_000.0, 20), &peaks(), &["bf16"], 1.0, CACHE).unwrap();
        assert_eq!(compute.bound, "compute");
        // Two sets of 8 MB stay in the cache.
        let cache = place(&record(1_000, 8_000_000, 4_000.0, 2), &peaks(), &["bf16"], 1.0, CACHE).unwrap();
        assert_eq!((cache.bound.as_str(), cache.peak_gbps), ("cache", Some(9000.0)));
        // One set that is larger by far does not.
        let large = Record {
            execution: Execution { rotation: None, ..record(1_000, 8 * CACHE, 4e6, 1).execution },
            ..record(1_000, 8 * CACHE, 4e6, 1)
        };
        assert_eq!(place(&large, &peaks(), &["bf16"], 1.0, CACHE).unwrap().bound, "memory");
    }

    #[test]
    fn a_peak_that_is_not_known_gives_no_percentage() {
        let roof = place(&record(1_000_000_000, 8_000_000, 4_000.0, 20), &peaks(), &["f32"], 1.0, CACHE).unwrap();
        assert_eq!((roof.compute_percent, roof.bound.as_str()), (None, "memory"));
    }

    #[test]
    fn what_could_not_be_measured_is_told_and_not_kept() {
        let mut peaks = Peaks { memory_gbps: None, ..peaks() };
        assert!(!peaks.noted("f32", Err("no kernel".into())) && !peaks.noted(MEMORY, Err("no buffer".into())));
        assert_eq!(peaks.missing(&["bf16"]), ["the peak of memory could not be measured: no buffer"]);
        assert_eq!(peaks.missing(&["f32"])[0], "the peak of f32 could not be measured: no kernel");
        let kept: Peaks = serde_json::from_value(serde_json::to_value(&peaks).unwrap()).unwrap();
        assert!(kept.failed.is_empty() && kept.tflops.len() == 1);
        assert!(peaks.noted("bf16", Ok(700.0)) && peaks.tflops["bf16"] == 800.0);
    }

    #[test]
    fn memory_that_is_faster_than_the_cache_is_not_believed() {
        let looks: Looks = [61.0, 60.0, 24.0].into_iter().collect();
        let kept = Peaks { memory_gbps: Some(61.0), cache_gbps: Some(16.7), memory_looks: looks, ..peaks() };
        assert!(kept.contradict());
        let trusted = kept.clone().trusted(true);
        assert_eq!((trusted.memory_gbps, trusted.cache_gbps, trusted.tflops), (None, None, kept.tflops.clone()));
        assert_eq!(trusted.memory_looks, Looks::default(), "what contradicts itself is forgotten");
        // A device of its own has caches and memory that are measured well enough.
        assert_eq!(kept.clone().trusted(false), kept);
        // A case shows that memory is faster than the cache was once seen to be: then the cache was seen wrongly.
        let mut raised = Peaks { memory_gbps: Some(10.0), cache_gbps: Some(16.7), ..peaks() };
        assert!(raised.noted(MEMORY, Ok(20.0)));
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
            assert_eq!(again.memory_looks.interval().is_some(), kept > 0, "the looks stay");
        }
    }

    #[test]
    fn what_is_faster_than_a_peak_is_doubted_and_what_comes_from_a_cache_is_not() {
        let doubts = |record: Record| {
            let roof = place(&record, &peaks(), &["bf16"], 1.0, CACHE).unwrap();
            doubtful(&record, &roof, &["bf16"], CACHE)
        };
        assert_eq!(doubts(record(10_000_000_000, 8_000_000, 10_000.0, 20)), ["bf16"]);
        assert_eq!(doubts(record(1_000, 50_000_000, 10_000.0, 20)), [MEMORY]);
        // Two sets of a megabyte stay in the cache, whose speed has no such limit.
        assert!(doubts(record(1_000, 1_000_000, 100.0, 2)).is_empty());
        assert!(doubts(record(8_150_000_000, 8_000_000, 10_000.0, 20)).is_empty());
    }

    #[test]
    fn what_is_faster_than_a_probe_in_turns_with_it_is_no_result() {
        let share = |middle, lo| Share { middle, lo, probe: 1.0 };
        let look = |middle, lo| Ok(share(middle, lo));
        let refused = nearest(vec![("f32", look(1.3, 1.2)), ("bf16", look(1.25, 1.1))]).unwrap_err();
        assert!(refused.starts_with("125 % of what a product of as many operations reached"), "{refused}");
        let refused = nearest(vec![(MEMORY, look(2.0, 1.9))]).unwrap_err();
        assert!(refused.starts_with("200 % of what copies and reads of memory reached"), "{refused}");
        // A probe that is faster shows that the peak was measured on a slower device.
        assert_eq!(
            nearest(vec![("f32", look(1.3, 1.2)), ("bf16", look(0.8, 0.7))]),
            Ok(Some(("bf16", share(0.8, 0.7))))
        );
        assert_eq!(nearest(vec![("f32", look(1.01, 0.9))]), Ok(Some(("f32", share(1.01, 0.9)))));
        assert!(repeated(4700.0, 4650.0).is_ok());
        assert!(repeated(5600.0, 4650.0).unwrap_err().starts_with("120 % of what copies and reads of memory reach"));
        assert_eq!(nearest(vec![]), Ok(None));
        // An interval that is too wide to tell is no excuse: it is looked at again, and then refused.
        let mut looks = [share(1.5, 0.9), share(1.01, 0.9), share(0.5, 0.4)].into_iter();
        assert_eq!(settled(|| vec![("f32", Ok(looks.next().unwrap()))]), Ok(Some(("f32", share(1.01, 0.9)))));
        let refused = settled(|| vec![("f32", look(1.5, 0.9))]).unwrap_err();
        assert!(refused.starts_with("150 % of what a product of as many operations reached"), "{refused}");
        let refused = nearest(vec![("f32", Err("no kernel".into()))]).unwrap_err();
        assert!(refused.ends_with("could not be measured again beside it: no kernel"), "{refused}");
    }
}
