//! What came before the first window.

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
