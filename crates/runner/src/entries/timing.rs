//! Measuring time and precision of an entry.

use super::units::{Fraction, HumanDuration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Measuring time and precision. Absent values are inherited.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a map such as {precision: 2%, max_time: 1s}")]
pub struct Timing {
    /// Stop when the half-width of every interval is at most this fraction of the median (1%).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Fraction>,
    /// Minimum number of windows (30).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_windows: Option<u32>,
    /// Maximum number of windows (2000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_windows: Option<u32>,
    /// Minimum measuring time of a case (300ms).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_time: Option<HumanDuration>,
    /// Maximum measuring time of a case, even if the precision is not reached (5s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_time: Option<HumanDuration>,
    /// Target duration of a window, which determines its number of launches (1ms).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<HumanDuration>,
    /// Minimum warm-up time (200ms, or half of max_time if that is less).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<HumanDuration>,
    /// Maximum warm-up time (3s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_warm_up: Option<HumanDuration>,
    /// Largest deviation of a speed-up from 1 that counts as no difference (2%).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<Fraction>,
}

impl Timing {
    /// Returns these options with the ones that `over` sets replaced.
    pub fn overwrite(&self, over: &Self) -> Self {
        Self {
            precision: over.precision.or(self.precision),
            min_windows: over.min_windows.or(self.min_windows),
            max_windows: over.max_windows.or(self.max_windows),
            min_time: over.min_time.or(self.min_time),
            max_time: over.max_time.or(self.max_time),
            window: over.window.or(self.window),
            warm_up: over.warm_up.or(self.warm_up),
            max_warm_up: over.max_warm_up.or(self.max_warm_up),
            margin: over.margin.or(self.margin),
        }
    }
}
