//! What the command line sets over everything that is asked for.

use super::{Autotune, Entry, Factor, Shard, Size, Span, Timing, Wanted};
use calorimeter_case::{Implementation, Regime};
use calorimeter_recipes::{Dtype, Element, Recipe};
use calorimeter_timing::telemetry::LockedClock;
use serde::{Deserialize, Serialize};

/// What the command line sets over every entry.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Overrides {
    /// Instead of every file's device.
    pub device: Option<Wanted>,
    /// Instead of every entry's implementations.
    pub implementations: Option<Vec<Implementation>>,
    /// Instead of the type of every entry's numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<Dtype>,
    /// Instead of the recipes of every entry that takes some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipes: Option<Vec<Recipe>>,
    /// Instead of the sizes of every entry that has m, k and n.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<Size>>,
    /// Over every entry's timing.
    pub timing: Timing,
    /// Instead of every entry's timeout.
    pub timeout: Option<Span>,
    /// Instead of every entry's seed.
    pub seed: Option<u64>,
    /// Only cases whose id matches this expression.
    pub filter: Option<String>,
    /// Only open and check each case: nothing is timed.
    pub untimed: bool,
    /// Instead of every entry's regimes.
    pub regimes: Option<Vec<Regime>>,
    /// Write a trace of every case.
    pub profile: bool,
    /// Follow the memory of every case.
    pub memory: bool,
    /// Time single launches of every case. Journals from before it was there are still resumed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub percentiles: bool,
    /// Whether kernels are tuned, how finely, and what becomes of the results.
    pub autotune: Autotune,
    /// Refuse to measure on a device that other processes use.
    pub require_idle: bool,
    /// Lock the clocks of the devices while the run lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_clocks: Option<LockedClock>,
    /// Measure each case in so many fresh processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launches: Option<u32>,
    /// Every size of every file times this. Journals from before it was there are still resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_shapes: Option<Factor>,
    /// Only this part of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// The folder of accelerator-microbenchmarks' formats for every entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export: Option<String>,
}

impl Overrides {
    /// The same, where what is not said is as it was said then.
    pub fn or_as(&self, then: &Self) -> Self {
        let fields = |overrides: &Self| match serde_json::to_value(overrides) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let (unsaid, mut all) = (fields(&Self::default()), fields(then));
        all.extend(fields(self).into_iter().filter(|(name, said)| unsaid.get(name) != Some(said)));
        let all: Self = serde_json::from_value(all.into()).unwrap_or_else(|_| self.clone());
        Self { timing: then.timing.overwrite(&self.timing), ..all }
    }

    /// An entry under the command line.
    pub fn over(&self, entry: Entry) -> Entry {
        let recipes = self.recipes.clone().filter(|_| entry.takes_recipes());
        let sizes = self.sizes.clone().filter(|_| entry.is_product());
        Entry {
            element: self.dtype.map_or(entry.element, Element::Float),
            recipes: recipes.unwrap_or(entry.recipes),
            sizes: sizes.unwrap_or(entry.sizes),
            device: self.device.or(entry.device),
            implementations: self.implementations.clone().or(entry.implementations),
            timing: entry.timing.overwrite(&self.timing),
            timeout: self.timeout.or(entry.timeout),
            seed: self.seed.or(entry.seed),
            regimes: self.regimes.clone().or(entry.regimes),
            profiler: self.profile || entry.profiler,
            memory_profiler: self.memory || entry.memory_profiler,
            percentiles: self.percentiles || entry.percentiles,
            ..entry
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_again_is_as_it_was() {
        let shard = "2/8".parse().ok();
        let span = |text: &str| Some(text.parse::<Span>().unwrap());
        let timing = Timing { max_time: span("1s"), min_time: span("10ms"), ..Timing::default() };
        let then = Overrides { seed: Some(7), shard, profile: true, timing, ..Overrides::default() };
        assert_eq!(Overrides::default().or_as(&then), then);
        assert_eq!(then.or_as(&Overrides::default()), then);
        let timing = Timing { max_time: span("2s"), ..Timing::default() };
        let said = Overrides { seed: Some(8), timing, ..Overrides::default() }.or_as(&then);
        assert_eq!((said.seed, said.shard, said.profile), (Some(8), shard, true));
        assert_eq!((said.timing.max_time, said.timing.min_time), (span("2s"), span("10ms")));
    }
}
