//! Rates, and where they stand against the machine's peaks.

use super::number::no_number;
use serde::{Deserialize, Serialize};

/// Rates, and where they stand against the machine's peaks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Arithmetic rate in 10¹² operations per second.
    #[serde(default, skip_serializing_if = "no_number")]
    pub tflops: Option<f64>,
    /// Memory rate in 10⁹ bytes per second.
    #[serde(default, skip_serializing_if = "no_number")]
    pub gbps: Option<f64>,
    /// Where the case stands against the machine's measured peaks.
    #[serde(default, skip_serializing_if = "Roofline::is_absent")]
    pub roofline: Option<Roofline>,
}

/// Where a case stands against the machine's measured peaks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Roofline {
    /// What limits the case: `compute` or `memory`.
    pub bound: String,
    /// Percent of that limit reached.
    pub percent: f64,
    /// Percent of the compute peak.
    #[serde(default, skip_serializing_if = "no_number")]
    pub compute_percent: Option<f64>,
    /// Percent of the bandwidth peak.
    #[serde(default, skip_serializing_if = "no_number")]
    pub memory_percent: Option<f64>,
    /// The compute peak in 10¹² operations per second.
    #[serde(default, skip_serializing_if = "no_number")]
    pub peak_tflops: Option<f64>,
    /// The bandwidth peak in 10⁹ bytes per second.
    #[serde(default, skip_serializing_if = "no_number")]
    pub peak_gbps: Option<f64>,
}

impl Roofline {
    pub(super) fn is_absent(this: &Option<Roofline>) -> bool {
        no_number(&this.as_ref().map(|roofline| roofline.percent))
    }
}
