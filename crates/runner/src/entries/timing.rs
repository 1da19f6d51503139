//! How long and how precisely to measure, as it is asked for.

use super::units::{Share, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long and how precisely to measure. What is absent comes from the level above.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timing {
    /// Stop when every interval's half-width is at most this share of its median (1%).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Share>,
    /// Never stop before this many windows (30).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_windows: Option<u32>,
    /// Never measure more windows than this (2000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_windows: Option<u32>,
    /// Never stop before a case was measured for this long (300ms).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_time: Option<Span>,
    /// Give up on precision after this long per case (5s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_time: Option<Span>,
    /// A window holds as many launches as it takes to last this long (1ms).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Span>,
    /// Warm up for at least this long (200ms, or half of max_time if that is less).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<Span>,
    /// Warm up for at most this long (3s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_warm_up: Option<Span>,
    /// A speed-up whose whole interval lies within this share of 1 is no difference (2%).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<Share>,
}

impl Timing {
    /// Takes what `over` sets, and keeps the rest.
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
