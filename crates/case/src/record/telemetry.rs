//! What sensors said meanwhile.

use super::number::{is_zero, no_number};
use serde::{Deserialize, Serialize};

/// What the device reported while a case was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Telemetry {
    /// Where the figures come from: `nvml`, `sysfs`, …
    pub source: String,
    /// Each sample, in order.
    pub samples: Vec<TelemetrySample>,
    /// Energy of one run in joules.
    #[serde(default, skip_serializing_if = "no_number")]
    pub joules: Option<f64>,
    /// Lower end of its 95 % interval.
    #[serde(default, skip_serializing_if = "no_number")]
    pub joules_lo: Option<f64>,
    /// Upper end of it.
    #[serde(default, skip_serializing_if = "no_number")]
    pub joules_hi: Option<f64>,
    /// Power in watts when the worker process began, before it used the device.
    #[serde(default, skip_serializing_if = "no_number")]
    pub idle_power_w: Option<f64>,
    /// Cycles of the processor's cores in one run.
    #[serde(default, skip_serializing_if = "no_number")]
    pub cycles: Option<f64>,
    /// Instructions of one run.
    #[serde(default, skip_serializing_if = "no_number")]
    pub instructions: Option<f64>,
    /// Misses of the processor's last cache in one run.
    #[serde(default, skip_serializing_if = "no_number")]
    pub cache_misses: Option<f64>,
    /// Rounds that were measured again because the device throttled in them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated_rounds: u32,
}

/// One look at a device's sensors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TelemetrySample {
    /// The round after which it was taken, counted from 1.
    pub round: u32,
    /// Clock of the multiprocessors, or of the processor's cores, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<u32>,
    /// Clock of the memory in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_clock_mhz: Option<u32>,
    /// Power in watts.
    #[serde(default, skip_serializing_if = "no_number")]
    pub power_w: Option<f64>,
    /// Temperature in degrees Celsius.
    #[serde(default, skip_serializing_if = "no_number")]
    pub temperature_c: Option<f64>,
    /// Why the clock was held back: `power-cap`, `thermal`, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttle: Vec<String>,
}
