//! What is known of a device's peaks.

use super::limit::{Limit, ProductKind};
use super::looks::Looks;
use calorimeter_case::record::Roofline;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// What products of one kind of number reach, in 10¹² operations per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// In the fastest window.
    pub burst: f64,
    /// In the middle window of a second of continuous load.
    pub sustained: f64,
}

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
    /// Matrix products by their kind of number. Files of early versions have none, and are not read.
    #[serde(deserialize_with = "of_known_kinds")]
    pub products: BTreeMap<ProductKind, Peak>,
    /// What could not be measured in this process, and why: it is not tried again here, but in the next run.
    #[serde(skip)]
    pub failed: BTreeMap<Limit, String>,
    /// Why those of an earlier run are not used, until somebody was told.
    #[serde(skip)]
    pub refused: Option<String>,
    /// Kinds of products that were probed again in this process, because a case outdid them.
    #[serde(skip)]
    pub again: Vec<ProductKind>,
}

/// The peaks that a file keeps; a kind that this version has no probe for is of no use to it.
fn of_known_kinds<'de, D: Deserializer<'de>>(file: D) -> Result<BTreeMap<ProductKind, Peak>, D::Error> {
    let kept = BTreeMap::<String, Peak>::deserialize(file)?;
    Ok(kept.into_iter().filter_map(|(name, peak)| Some((ProductKind::named(&name)?, peak))).collect())
}

/// What can be over a peak by noise alone.
pub const TOLERATED_PERCENT: f64 = 102.0;

/// What a device can do, from far less than any that is in use to far more, in 10⁹ bytes and in 10¹² operations per second.
const GBPS: RangeInclusive<f64> = 1e-3..=1e6;
const TFLOPS: RangeInclusive<f64> = 1e-6..=1e6;

impl Peaks {
    /// A figure that no device reaches, with its name: somebody has written it.
    pub fn impossible(&self) -> Option<String> {
        let rates = self.memory_gbps.iter().chain(&self.cache_gbps).chain(self.memory_looks.rates());
        let rate = rates.copied().find(|rate| !GBPS.contains(rate)).map(|rate| format!("{rate} GB/s"));
        let products = self.products.iter().flat_map(|(kind, peak)| [(kind, peak.burst), (kind, peak.sustained)]);
        let product = products.into_iter().find(|(_, rate)| !TFLOPS.contains(rate));
        rate.or_else(|| product.map(|(kind, rate)| format!("{rate} TFLOP/s of {kind}")))
    }

    /// Whether memory came out faster than the cache before it, so that one of the two is wrong.
    pub fn contradict(&self) -> bool {
        let (Some(memory), Some(cache)) = (self.memory_gbps, self.cache_gbps) else { return false };
        100.0 * memory > TOLERATED_PERCENT * cache
    }

    /// The same without what is not to be trusted on a device whose memory others use: figures that contradict each other,
    /// and such of a single look. Looks that lie far apart stay, and are joined by others.
    pub fn trusted(mut self, shares_memory: bool) -> Self {
        let single = self.memory_looks == Looks::default();
        if shares_memory && (single || self.contradict() || self.memory_looks.are_unsettled()) {
            if self.contradict() {
                self.memory_looks = Looks::default();
            }
            (self.memory_gbps, self.cache_gbps) = (None, None);
        }
        self
    }

    /// Takes a peak of products where it is higher than the known one.
    pub fn raise(&mut self, kind: ProductKind, peak: Peak) {
        let known = self.products.entry(kind).or_insert(peak);
        *known = Peak { burst: known.burst.max(peak.burst), sustained: known.sustained.max(peak.sustained) };
    }

    /// Takes a peak of memory where it is higher than the known one.
    pub fn raise_memory(&mut self, rate: f64) {
        self.memory_gbps = self.memory_gbps.into_iter().chain([rate]).reduce(f64::max);
        // The cache is at least as fast, so a lower figure of it was too low.
        self.cache_gbps = self.cache_gbps.filter(|_| !self.contradict());
    }

    /// The kinds that a case kept up better than their probes, and that were not probed again in this process yet.
    pub fn outdone(&mut self, roof: &Roofline, kinds: &[ProductKind]) -> Vec<ProductKind> {
        let over = roof.compute_percent.is_some_and(|percent| percent > TOLERATED_PERCENT);
        let outdone: Vec<ProductKind> =
            kinds.iter().copied().filter(|kind| over && !self.again.contains(kind)).collect();
        self.again.extend(&outdone);
        outdone
    }

    /// Takes the reason why there is no peak.
    pub fn fail(&mut self, what: Limit, why: String) {
        self.failed.insert(what, why);
    }

    /// What is missing for a case whose products are of these kinds, in words.
    pub fn missing(&self, kinds: &[ProductKind]) -> Vec<String> {
        let compute = !kinds.is_empty() && !kinds.iter().any(|kind| self.products.contains_key(kind));
        let products = kinds.iter().filter(|_| compute).map(|&kind| Limit::Products(kind));
        let wanted = products.chain(self.memory_gbps.is_none().then_some(Limit::Memory));
        let why = |what| self.failed.get(&what).map(|why| format!("the peak of {what} could not be measured: {why}"));
        wanted.filter_map(why).collect()
    }
}
