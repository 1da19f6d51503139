//! Measured peaks of a device.

use super::limit::{Limit, MatmulPrecision};
use super::rate_samples::RateSamples;
use calorimeter_case::Warning;
use calorimeter_case::record::Roofline;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Matmul peak in one precision, in TFLOP/s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GemmPeak {
    /// Rate of the fastest window.
    pub burst: f64,
    /// Median rate of the windows under a second of continuous load.
    pub sustained: f64,
}

/// Peaks of one device with one driver and one clock policy.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DevicePeaks {
    /// Unique identity of the device.
    pub device: String,
    /// Driver and its version.
    pub driver: String,
    /// Clock settings during the measurement.
    pub policy: String,
    /// Time of the measurement.
    pub measured: String,
    /// Bandwidth of memory far larger than any cache, in GB/s; absent if it could not be measured.
    pub memory_gbps: Option<f64>,
    /// Bandwidth of data that fits into the last-level cache, in GB/s.
    pub cache_gbps: Option<f64>,
    /// Memory bandwidth of each sample in ascending order; the range is the interval of the peak.
    #[serde(default)]
    pub memory_looks: RateSamples,
    /// Matmul peaks by precision. Files of early versions lack them and are not read.
    #[serde(deserialize_with = "of_known_kinds")]
    pub products: BTreeMap<MatmulPrecision, GemmPeak>,
    /// Failed probes of this process with the reason. They are retried in the next run.
    #[serde(skip)]
    pub failed: BTreeMap<Limit, String>,
    /// Reason for rejecting the cached peaks, until it is reported.
    #[serde(skip)]
    pub rejection: Option<String>,
    /// Precisions that this process has probed again because a case exceeded them.
    #[serde(skip)]
    pub reprobed: Vec<MatmulPrecision>,
}

/// Deserializes peaks, skipping precisions that this version does not know.
fn of_known_kinds<'de, D: Deserializer<'de>>(file: D) -> Result<BTreeMap<MatmulPrecision, GemmPeak>, D::Error> {
    let kept = BTreeMap::<String, GemmPeak>::deserialize(file)?;
    Ok(kept.into_iter().filter_map(|(name, peak)| Some((MatmulPrecision::from_name(&name)?, peak))).collect())
}

/// Percentage of a peak that noise alone can reach.
pub(super) const TOLERATED_PERCENT: f64 = 102.0;

/// Plausible rates of any device, in GB/s and TFLOP/s.
const PLAUSIBLE_GBPS: RangeInclusive<f64> = 1e-3..=1e6;
const PLAUSIBLE_TFLOPS: RangeInclusive<f64> = 1e-6..=1e6;

impl DevicePeaks {
    /// Returns an implausible rate with its name; the file must have been edited.
    pub fn impossible_rate(&self) -> Option<String> {
        let rates = self.memory_gbps.iter().chain(&self.cache_gbps).chain(self.memory_looks.rates());
        let rate = rates.copied().find(|rate| !PLAUSIBLE_GBPS.contains(rate)).map(|rate| format!("{rate} GB/s"));
        let products = self.products.iter().flat_map(|(kind, peak)| [(kind, peak.burst), (kind, peak.sustained)]);
        let product = products.into_iter().find(|(_, rate)| !PLAUSIBLE_TFLOPS.contains(rate));
        rate.or_else(|| product.map(|(kind, rate)| format!("{rate} TFLOP/s of {kind}")))
    }

    /// True if memory was measured faster than the cache, so that one of the rates is wrong.
    pub fn memory_exceeds_cache(&self) -> bool {
        let (Some(memory), Some(cache)) = (self.memory_gbps, self.cache_gbps) else { return false };
        100.0 * memory > TOLERATED_PERCENT * cache
    }

    /// Drops memory rates that are unreliable on a device with shared memory: contradictory ones, and those without samples
    /// or with widely scattered ones. Scattered samples are kept, to be combined with new ones.
    pub fn without_distrusted_rates(mut self, shares_memory: bool) -> Self {
        let single = self.memory_looks == RateSamples::default();
        if shares_memory && (single || self.memory_exceeds_cache() || self.memory_looks.needs_more_samples()) {
            if self.memory_exceeds_cache() {
                self.memory_looks = RateSamples::default();
            }
            (self.memory_gbps, self.cache_gbps) = (None, None);
        }
        self
    }

    /// Raises the matmul peak of a precision.
    pub fn raise(&mut self, kind: MatmulPrecision, peak: GemmPeak) {
        let known = self.products.entry(kind).or_insert(peak);
        *known = GemmPeak { burst: known.burst.max(peak.burst), sustained: known.sustained.max(peak.sustained) };
    }

    /// Raises the memory peak.
    pub fn raise_memory(&mut self, rate: f64) {
        self.memory_gbps = self.memory_gbps.into_iter().chain([rate]).reduce(f64::max);
        // The cache is at least as fast, so a lower rate was measured wrongly.
        self.cache_gbps = self.cache_gbps.filter(|_| !self.memory_exceeds_cache());
    }

    /// Returns the precisions whose sustained peak a case exceeded, and marks them as probed again in this process.
    pub fn take_exceeded(&mut self, roof: &Roofline, kinds: &[MatmulPrecision]) -> Vec<MatmulPrecision> {
        let is_exceeded = roof.compute_percent.is_some_and(|percent| percent > TOLERATED_PERCENT);
        let exceeded: Vec<MatmulPrecision> =
            kinds.iter().copied().filter(|kind| is_exceeded && !self.reprobed.contains(kind)).collect();
        self.reprobed.extend(&exceeded);
        exceeded
    }

    /// Records a failed probe.
    pub fn record_failure(&mut self, what: Limit, why: String) {
        self.failed.insert(what, why);
    }

    /// Warnings about missing peaks for matmuls in these precisions.
    pub fn missing_peaks(&self, kinds: &[MatmulPrecision]) -> Vec<Warning> {
        let compute = !kinds.is_empty() && !kinds.iter().any(|kind| self.products.contains_key(kind));
        let products = kinds.iter().filter(|_| compute).map(|&kind| Limit::Matmul(kind));
        let wanted = products.chain(self.memory_gbps.is_none().then_some(Limit::Memory));
        let why = |what| self.failed.get(&what).map(|why| Warning::missing_peak(what, why));
        wanted.filter_map(why).collect()
    }
}
