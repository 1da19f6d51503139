//! What sensors said meanwhile.

use super::column::{Column, Field, Read, some};
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

impl Telemetry {
    /// Its columns in tables, in their order.
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "clock_mhz",
            field: "telemetry.samples.clock_mhz",
            unit: "MHz",
            doc: "of the multiprocessors or cores, in the middle sample",
            read: Read::Number(|telemetry| middle(telemetry, |sample| sample.clock_mhz.map(f64::from))),
        },
        Column {
            name: "memory_clock_mhz",
            field: "telemetry.samples.memory_clock_mhz",
            unit: "MHz",
            doc: "of the memory, in the middle sample",
            read: Read::Number(|telemetry| middle(telemetry, |sample| sample.memory_clock_mhz.map(f64::from))),
        },
        Column {
            name: "power_w",
            field: "telemetry.samples.power_w",
            unit: "W",
            doc: "in the middle sample",
            read: Read::Number(|telemetry| middle(telemetry, |sample| sample.power_w)),
        },
        Column {
            name: "temperature_c",
            field: "telemetry.samples.temperature_c",
            unit: "°C",
            doc: "in the middle sample",
            read: Read::Number(|telemetry| middle(telemetry, |sample| sample.temperature_c)),
        },
        Column {
            name: "throttle",
            field: "telemetry.samples.throttle",
            unit: "",
            doc: "why the clock was held back, each reason once: `power-cap`, `hardware-slowdown`, `thermal`, `power-brake`",
            read: Read::Written(throttle),
        },
        Column {
            name: "joules",
            field: "telemetry.joules",
            unit: "J",
            doc: "energy of one pass of the case alone, what the device draws without work included: see [Method](method.md#energy)",
            read: Read::Number(|telemetry| telemetry.joules),
        },
        Column {
            name: "joules_lo",
            field: "telemetry.joules_lo",
            unit: "J",
            doc: "lower end of its 95 % interval",
            read: Read::Number(|telemetry| telemetry.joules_lo),
        },
        Column {
            name: "joules_hi",
            field: "telemetry.joules_hi",
            unit: "J",
            doc: "upper end",
            read: Read::Number(|telemetry| telemetry.joules_hi),
        },
        Column {
            name: "idle_power_w",
            field: "telemetry.idle_power_w",
            unit: "W",
            doc: "when the worker process began, before it used the device",
            read: Read::Number(|telemetry| telemetry.idle_power_w),
        },
        Column {
            name: "cycles",
            field: "telemetry.cycles",
            unit: "",
            doc: "of the cores in one pass, from the processor's counters, on the CPU",
            read: Read::Number(|telemetry| telemetry.cycles),
        },
        Column {
            name: "instructions",
            field: "telemetry.instructions",
            unit: "",
            doc: "of one pass, from the same counters",
            read: Read::Number(|telemetry| telemetry.instructions),
        },
        Column {
            name: "cache_misses",
            field: "telemetry.cache_misses",
            unit: "",
            doc: "of the last cache in one pass, from the same counters",
            read: Read::Number(|telemetry| telemetry.cache_misses),
        },
    ];

    /// Its fields that no column shows.
    pub const JOURNAL_ONLY: &'static [Field] = &[
        Field { name: "telemetry.source", kind: "text", doc: "`nvml`, or `sysfs` for a processor" },
        Field {
            name: "telemetry.samples.round",
            kind: "whole number",
            doc: "looks at the sensors, at most 64, the same for all arms of a group; this is how many rounds had ended, where 0 is the warm-up and the first round",
        },
        Field {
            name: "telemetry.repeated_rounds",
            kind: "whole number, absent if 0",
            doc: "rounds measured again because the device was held back in them",
        },
    ];
}

impl Telemetry {
    /// Puts its samples together into one, the middle of each figure with every reason: what its columns show.
    pub fn condense(&mut self) {
        let whole = |figure: f64| figure.round() as u32;
        let mut throttle: Vec<String> = self.samples.iter_mut().flat_map(|sample| sample.throttle.drain(..)).collect();
        throttle.sort_unstable();
        throttle.dedup();
        let together = TelemetrySample {
            round: 0,
            clock_mhz: middle(self, |sample| sample.clock_mhz.map(f64::from)).map(whole),
            memory_clock_mhz: middle(self, |sample| sample.memory_clock_mhz.map(f64::from)).map(whole),
            power_w: middle(self, |sample| sample.power_w),
            temperature_c: middle(self, |sample| sample.temperature_c),
            throttle,
        };
        let some = !self.samples.is_empty();
        self.samples = some.then_some(together).into_iter().collect();
    }
}

/// The middle one of a case's samples.
fn middle(telemetry: &Telemetry, of: impl Fn(&TelemetrySample) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = telemetry.samples.iter().filter_map(of).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Every reason that was seen, once.
fn throttle(telemetry: &Telemetry) -> Option<String> {
    let mut reasons: Vec<&str> = telemetry.samples.iter().flat_map(|s| s.throttle.iter().map(String::as_str)).collect();
    reasons.sort_unstable();
    reasons.dedup();
    some(&reasons).map(|reasons| reasons.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_together_shows_the_same_in_every_column() {
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
        let whole = Telemetry { source: "nvml".into(), samples, joules: Some(0.5), ..Telemetry::default() };
        let mut short = whole.clone();
        short.condense();
        assert_eq!(short.samples.len(), 1);
        for column in Telemetry::COLUMNS {
            let [one, other] = [&whole, &short].map(|telemetry| format!("{:?}", column.cell(telemetry)));
            assert_eq!(one, other, "{}", column.name);
        }
        let mut none = Telemetry::default();
        none.condense();
        assert!(none.samples.is_empty());
    }
}
