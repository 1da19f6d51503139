//! Sensor readings during a measurement.

use super::column::{Column, Field, columns, fields, nonempty};
use super::number::{is_not_finite, is_zero};
use serde::{Deserialize, Serialize};

/// Sensor readings of the device during the measurement of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Telemetry {
    /// Source of the readings: `nvml`, `sysfs`, …
    pub source: String,
    /// Samples in order.
    pub samples: Vec<TelemetrySample>,
    /// Energy of one pass in joules.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub joules: Option<f64>,
    /// Lower end of the 95 % interval of the energy.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub joules_lo: Option<f64>,
    /// Upper end of the 95 % interval of the energy.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub joules_hi: Option<f64>,
    /// Power in watts at the start of the worker process, before it used the device.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub idle_power_w: Option<f64>,
    /// CPU core cycles of one pass.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub cycles: Option<f64>,
    /// Instructions of one pass.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub instructions: Option<f64>,
    /// Last-level cache misses of the CPU in one pass.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub cache_misses: Option<f64>,
    /// Rounds that were repeated because the device was throttled.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated_rounds: u32,
}

/// Sample of a device's sensors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TelemetrySample {
    /// Round after which the sample was taken, counted from 1.
    pub round: u32,
    /// Clock of the multiprocessors, or of the CPU cores, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<u32>,
    /// Clock of the memory in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_clock_mhz: Option<u32>,
    /// Power in watts.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub power_w: Option<f64>,
    /// Temperature in degrees Celsius.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub temperature_c: Option<f64>,
    /// Throttle reasons: `power-cap`, `thermal`, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttle: Vec<String>,
}

impl Telemetry {
    /// Columns in tables, in order.
    pub const COLUMNS: &'static [Column<Self>] = columns! { |telemetry|
        "clock_mhz" from "telemetry.samples.clock_mhz" in "MHz":
            Number(upper_median(telemetry, |sample| sample.clock_mhz.map(f64::from))),
            "clock of the multiprocessors or cores, median of the samples";
        "memory_clock_mhz" from "telemetry.samples.memory_clock_mhz" in "MHz":
            Number(upper_median(telemetry, |sample| sample.memory_clock_mhz.map(f64::from))),
            "clock of the memory, median of the samples";
        "power_w" from "telemetry.samples.power_w" in "W": Number(upper_median(telemetry, |sample| sample.power_w)),
            "power, median of the samples";
        "temperature_c" from "telemetry.samples.temperature_c" in "°C":
            Number(upper_median(telemetry, |sample| sample.temperature_c)),
            "temperature, median of the samples";
        "throttle" from "telemetry.samples.throttle": Written(throttle_reasons(telemetry)),
            "throttle reasons: `power-cap`, `hardware-slowdown`, `thermal`, `power-brake`";
        "joules" from "telemetry.joules" in "J": Number(telemetry.joules),
            "energy of one pass in isolation, including the idle power of the device: see [Method](method.md#energy)";
        "joules_lo" from "telemetry.joules_lo" in "J": Number(telemetry.joules_lo),
            "lower end of the 95 % interval of `joules`";
        "joules_hi" from "telemetry.joules_hi" in "J": Number(telemetry.joules_hi),
            "upper end of the 95 % interval of `joules`";
        "idle_power_w" from "telemetry.idle_power_w" in "W": Number(telemetry.idle_power_w),
            "power at the start of the worker process, before it used the device";
        "cycles" from "telemetry.cycles": Number(telemetry.cycles),
            "core cycles of one pass, from hardware counters, on the CPU";
        "instructions" from "telemetry.instructions": Number(telemetry.instructions),
            "instructions of one pass, from hardware counters";
        "cache_misses" from "telemetry.cache_misses": Number(telemetry.cache_misses),
            "last-level cache misses of one pass, from hardware counters";
    };

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = fields! {
        "telemetry.source": "text", "`nvml`, or `sysfs` for a CPU";
        "telemetry.samples.round": "whole number",
            "number of completed rounds at each sensor sample, where 0 is the warm-up and the first round; at most 64 samples, shared by all arms of a group";
        "telemetry.repeated_rounds": "whole number, absent if 0",
            "rounds that were repeated because the device was throttled";
    };
}

impl Telemetry {
    /// Replaces the samples by one: the median of each reading and all throttle reasons, which the columns show.
    pub fn condense(&mut self) {
        let rounded = |value: f64| value.round() as u32;
        let mut throttle: Vec<String> = self.samples.iter_mut().flat_map(|sample| sample.throttle.drain(..)).collect();
        throttle.sort_unstable();
        throttle.dedup();
        let condensed = TelemetrySample {
            round: 0,
            clock_mhz: upper_median(self, |sample| sample.clock_mhz.map(f64::from)).map(rounded),
            memory_clock_mhz: upper_median(self, |sample| sample.memory_clock_mhz.map(f64::from)).map(rounded),
            power_w: upper_median(self, |sample| sample.power_w),
            temperature_c: upper_median(self, |sample| sample.temperature_c),
            throttle,
        };
        let measured = !self.samples.is_empty();
        self.samples = measured.then_some(condensed).into_iter().collect();
    }
}

/// Median of a reading over the samples; of an even number of samples the upper middle one.
fn upper_median(telemetry: &Telemetry, value: impl Fn(&TelemetrySample) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = telemetry.samples.iter().filter_map(value).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// All throttle reasons, without duplicates.
fn throttle_reasons(telemetry: &Telemetry) -> Option<String> {
    let mut reasons: Vec<&str> = telemetry.samples.iter().flat_map(|s| s.throttle.iter().map(String::as_str)).collect();
    reasons.sort_unstable();
    reasons.dedup();
    nonempty(&reasons).map(|reasons| reasons.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn condensed_samples_show_equal_columns() {
        let sample = |clock, watts, throttle: &[&str]| TelemetrySample {
            clock_mhz: clock,
            power_w: Some(watts),
            throttle: throttle.iter().map(ToString::to_string).collect(),
            ..TelemetrySample::default()
        };
        let samples = vec![
            sample(Some(1980), 300.0, &["power-cap"]),
            sample(None, 700.5, &[]),
            sample(Some(1500), 690.0, &["thermal", "power-cap"]),
        ];
        let full = Telemetry { source: "nvml".into(), samples, joules: Some(0.5), ..Telemetry::default() };
        let mut short = full.clone();
        short.condense();
        assert_eq!(short.samples.len(), 1);
        for column in Telemetry::COLUMNS {
            let [expected, found] = [&full, &short].map(|telemetry| format!("{:?}", column.cell(telemetry)));
            assert_eq!(found, expected, "{}", column.name);
        }
        let mut none = Telemetry::default();
        none.condense();
        assert!(none.samples.is_empty());
    }
}
