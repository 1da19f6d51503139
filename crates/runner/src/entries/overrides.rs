//! What the command line sets over everything that is asked for.

use super::{Entry, Factor, Span, Timing, Wanted};
use calorimeter_case::{Implementation, Regime};
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
    /// Whether kernels are tuned, and what becomes of the results.
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
    /// The folder of accelerator-microbenchmarks' formats for every entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export: Option<String>,
}

/// Whether kernels are tuned, and what becomes of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Autotune {
    /// Tune what no earlier run on this device has tuned, and keep it for later ones
    #[default]
    Cached,
    /// Tune everything anew, into the run's own folder
    Fresh,
    /// Never tune: a case whose kernels no earlier run has tuned is skipped
    Off,
}

impl Overrides {
    /// An entry under the command line.
    pub fn over(&self, entry: Entry) -> Entry {
        Entry {
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
