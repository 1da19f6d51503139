//! Command-line options that override entries.

use super::{Autotune, DeviceSelection, Entry, HumanDuration, ScaleFactor, Shard, Size, Timing};
use calorimeter_case::{Implementation, Regime};
use calorimeter_recipes::{Dtype, Element, Recipe};
use calorimeter_timing::telemetry::LockedClock;
use serde::{Deserialize, Deserializer, Serialize};

/// Command-line options that override every entry.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Overrides {
    /// Device.
    pub device: Option<DeviceSelection>,
    /// Implementations. Names are checked when the run is prepared, because a Python source may add names.
    #[serde(deserialize_with = "read_implementations")]
    pub implementations: Option<Vec<Implementation>>,
    /// Python sources whose implementations are added. Omitted if empty, so that journals of earlier versions can be
    /// resumed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub python: Vec<String>,
    /// Dtype.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<Dtype>,
    /// Recipes, for entries that take recipes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipes: Option<Vec<Recipe>>,
    /// Sizes, for entries with the axes m, k and n.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<Size>>,
    /// Timing options.
    pub timing: Timing,
    /// Time limit of a case.
    pub timeout: Option<HumanDuration>,
    /// Seed of inputs and weights.
    pub seed: Option<u64>,
    /// Regular expression that case ids must match.
    pub filter: Option<String>,
    /// Open and check cases without timing them.
    pub untimed: bool,
    /// Timing modes.
    pub regimes: Option<Vec<Regime>>,
    /// Write a trace of every case.
    pub profile: bool,
    /// Profile the memory of every case.
    pub memory: bool,
    /// Time single launches of every case. Omitted if false, so that journals of earlier versions can be resumed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub percentiles: bool,
    /// Autotuning options.
    pub autotune: Autotune,
    /// Refuse to measure on a device that other processes use.
    pub require_idle: bool,
    /// Lock the clocks of the devices during the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_clocks: Option<LockedClock>,
    /// Number of fresh processes that measure each case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launches: Option<u32>,
    /// Factor of all sizes. Omitted if unset, so that journals of earlier versions can be resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_shapes: Option<ScaleFactor>,
    /// Part of the plan to measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Output folder for the formats of accelerator-microbenchmarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export: Option<String>,
}

/// Reads implementations whose names may be unknown.
fn read_implementations<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<Implementation>>, D::Error> {
    let names: Option<Vec<String>> = Option::deserialize(from)?;
    Ok(names.map(|names| names.iter().map(|name| Implementation::from_record(name)).collect()))
}

impl Overrides {
    /// Returns these options, with unset ones taken from `then`.
    pub fn or_previous(&self, then: &Self) -> Self {
        let fields = |overrides: &Self| match serde_json::to_value(overrides) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let (unset, mut merged) = (fields(&Self::default()), fields(then));
        merged.extend(fields(self).into_iter().filter(|(name, value)| unset.get(name) != Some(value)));
        let merged: Self = serde_json::from_value(merged.into()).unwrap_or_else(|_| self.clone());
        Self { timing: then.timing.overwrite(&self.timing), ..merged }
    }

    /// Applies the options to an entry.
    pub fn apply_to(&self, entry: Entry) -> Entry {
        let recipes = self.recipes.clone().filter(|_| entry.takes_recipes());
        let sizes = self.sizes.clone().filter(|_| entry.is_matmul());
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
    fn omitted_options_keep_previous_values() {
        let shard = "2/8".parse().ok();
        let span = |text: &str| Some(text.parse::<HumanDuration>().unwrap());
        let timing = Timing { max_time: span("1s"), min_time: span("10ms"), ..Timing::default() };
        let then = Overrides { seed: Some(7), shard, profile: true, timing, ..Overrides::default() };
        assert_eq!(Overrides::default().or_previous(&then), then);
        assert_eq!(then.or_previous(&Overrides::default()), then);
        let timing = Timing { max_time: span("2s"), ..Timing::default() };
        let merged = Overrides { seed: Some(8), timing, ..Overrides::default() }.or_previous(&then);
        assert_eq!((merged.seed, merged.shard, merged.profile), (Some(8), shard, true));
        assert_eq!((merged.timing.max_time, merged.timing.min_time), (span("2s"), span("10ms")));
    }
}
