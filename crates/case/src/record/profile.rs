//! What a trace shows.

use serde::{Deserialize, Serialize};

/// What a trace shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// What ran on the device, the longest first, where a trace was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelShare>,
    /// The trace of the case, below the run's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// A kernel's part of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelShare {
    /// Its name.
    pub name: String,
    /// How often it ran.
    pub calls: f64,
    /// How long it ran in total, in nanoseconds.
    pub nanos: f64,
    /// Its share of the time of all kernels.
    pub share: f64,
}
