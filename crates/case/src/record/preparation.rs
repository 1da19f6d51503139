//! Preparation of a measurement: priming, autotuning, stopwatch resolution.

use super::column::{Column, columns};
use serde::{Deserialize, Serialize};

/// Preparation before the first window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preparation {
    /// Time of the first passes, in which kernels are compiled and tuned; the warm-up follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prime_ns: Option<u64>,
    /// Autotuning during priming.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
    /// Smallest step of the stopwatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granularity_ns: Option<u64>,
    /// Reading of the stopwatch for an empty window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_window_ns: Option<u64>,
}

/// Autotuning during priming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuning {
    /// Duration of the priming that contained the autotuning, in nanoseconds. Autotuning takes almost all of it.
    pub nanos: u64,
    /// Number of tunings.
    pub events: u64,
}

impl Preparation {
    /// Columns in tables, in order.
    pub const COLUMNS: &'static [Column<Self>] = columns! { |preparation|
        "prime_ns" in "ns": Count(preparation.prime_ns), "passes before the warm-up, including compilation and tuning";
        "tuning_ns" from "tuning.nanos" in "ns": Count(preparation.tuning.map(|tuning| tuning.nanos)),
            "duration of the priming, if it contained autotuning";
        "tuning_events" from "tuning.events": Count(preparation.tuning.map(|tuning| tuning.events)),
            "number of tunings during the priming";
        "granularity_ns" in "ns": Count(preparation.granularity_ns), "smallest step of the clock";
        "empty_window_ns" in "ns": Count(preparation.empty_window_ns), "reading of the clock for an empty window";
    };
}
