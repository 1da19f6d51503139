//! What came before the first window.

use super::column::{Column, Read};
use serde::{Deserialize, Serialize};

/// What came before the first window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preparation {
    /// Time of the first passes, in which kernels are compiled and tuned; the warm-up comes after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prime_ns: Option<u64>,
    /// Autotuning seen while priming.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
    /// The smallest step of the stopwatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granularity_ns: Option<u64>,
    /// What the stopwatch reads for a window without launches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_window_ns: Option<u64>,
}

/// Autotuning that took place while priming.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuning {
    /// Nanoseconds of the priming that it was part of: almost all of them are its own.
    pub nanos: u64,
    /// How many times something was tuned.
    pub events: u64,
}

impl Preparation {
    /// Its columns in tables, in their order.
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "prime_ns",
            field: "prime_ns",
            unit: "ns",
            doc: "the passes before the warm-up: compiling and tuning included",
            read: Read::Count(|preparation| preparation.prime_ns),
        },
        Column {
            name: "tuning_ns",
            field: "tuning.nanos",
            unit: "ns",
            doc: "time of the whole priming, if something was tuned in it",
            read: Read::Count(|preparation| preparation.tuning.map(|tuning| tuning.nanos)),
        },
        Column {
            name: "tuning_events",
            field: "tuning.events",
            unit: "",
            doc: "how many times something was tuned in it",
            read: Read::Count(|preparation| preparation.tuning.map(|tuning| tuning.events)),
        },
        Column {
            name: "granularity_ns",
            field: "granularity_ns",
            unit: "ns",
            doc: "smallest step that the clock showed",
            read: Read::Count(|preparation| preparation.granularity_ns),
        },
        Column {
            name: "empty_window_ns",
            field: "empty_window_ns",
            unit: "ns",
            doc: "what the clock reads for a window without launches",
            read: Read::Count(|preparation| preparation.empty_window_ns),
        },
    ];
}
