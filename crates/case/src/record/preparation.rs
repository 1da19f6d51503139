//! Preparation of a measurement: priming, autotuning, stopwatch resolution.

use super::column::{CellReader, Column};
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
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "prime_ns",
            field: "prime_ns",
            unit: "ns",
            doc: "passes before the warm-up, including compilation and tuning",
            read: CellReader::Count(|preparation| preparation.prime_ns),
        },
        Column {
            name: "tuning_ns",
            field: "tuning.nanos",
            unit: "ns",
            doc: "duration of the priming, if it contained autotuning",
            read: CellReader::Count(|preparation| preparation.tuning.map(|tuning| tuning.nanos)),
        },
        Column {
            name: "tuning_events",
            field: "tuning.events",
            unit: "",
            doc: "number of tunings during the priming",
            read: CellReader::Count(|preparation| preparation.tuning.map(|tuning| tuning.events)),
        },
        Column {
            name: "granularity_ns",
            field: "granularity_ns",
            unit: "ns",
            doc: "smallest step of the clock",
            read: CellReader::Count(|preparation| preparation.granularity_ns),
        },
        Column {
            name: "empty_window_ns",
            field: "empty_window_ns",
            unit: "ns",
            doc: "reading of the clock for an empty window",
            read: CellReader::Count(|preparation| preparation.empty_window_ns),
        },
    ];
}
