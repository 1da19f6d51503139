//! Saved noise of a device, and the margin derived from it.

use crate::clock_notes;
use crate::devices::DiscoveredDevice;
use crate::host;
use crate::platforms;
use calorimeter_case::Device;
use calorimeter_sinks::cache;
use chrono::{DateTime, Local, TimeDelta};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum age in days of saved noise, because machines change.
const MAX_AGE_DAYS: i64 = 30;

/// Maximum clock difference in days between machines that share a home directory.
const MAX_CLOCK_SKEW_DAYS: i64 = 1;

/// Version of the meaning of the figures; incremented when it changes.
pub const NOISE_VERSION: u32 = 1;

/// Maximum floor. The margin is twice the floor, so that a larger one would make every verdict SAME.
const MAX_FLOOR: f64 = 0.4;

/// Result of A/A tests. Files of early versions have no policy and count as outdated.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceNoise {
    /// Version of the figures: [`NOISE_VERSION`].
    pub version: u32,
    /// Device, e.g. `cuda:0`.
    pub device: String,
    /// Unique identity of the device.
    pub identity: String,
    /// Driver and its version.
    pub driver: String,
    /// Clock settings during the measurement.
    pub policy: String,
    /// Time of the measurement (RFC 3339).
    pub measured: String,
    /// Number of worker processes that made the comparisons.
    pub processes: u32,
    /// Workloads that were compared with themselves.
    pub workloads: Vec<WorkloadNoise>,
    /// Rates over all comparisons.
    #[serde(flatten)]
    pub total: NoiseRates,
    /// Median floor of all workloads; robust against a workload that cannot be timed well.
    pub middle_floor: f64,
    /// Margin for later verdicts on this device.
    pub margin: f64,
}

/// Noise of one workload at one size.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WorkloadNoise {
    /// Id of the case.
    pub case: String,
    /// Stopwatch.
    pub stopwatch: String,
    /// Rates of its comparisons.
    #[serde(flatten)]
    pub rates: NoiseRates,
}

/// Rates of A/A comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NoiseRates {
    /// Number of comparisons.
    pub comparisons: u32,
    /// Share of comparisons that reported a difference above the margin.
    pub false_verdict_rate: f64,
    /// Share of comparisons whose 95 % interval does not contain 1.
    pub interval_miss_rate: f64,
    /// Share of comparisons with verdict SAME; the remainder was inconclusive.
    pub same_rate: f64,
    /// 95th percentile of the relative deviation of a ratio from 1.
    pub floor: f64,
}

/// Noise floor that verdicts on a device use.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NoiseFloor {
    floor: f64,
    /// Reason why the saved noise is ignored, if it is.
    pub note: Option<String>,
}

impl NoiseFloor {
    /// Loads the saved noise of a device, if it is still valid.
    pub fn for_device(found: &DiscoveredDevice) -> Self {
        noise_path(&found.identity).map_or_else(Self::default, |path| Self::from_file(&path, found))
    }

    /// Loads the saved noise of each device of an earlier run, as its environment describes them. Noise that is not
    /// valid for the driver and the clock settings of the run is left out.
    pub fn of_environment(environment: &Value) -> BTreeMap<Device, f64> {
        let devices = environment["devices"].as_array().into_iter().flatten();
        let floor = |facts: &Value| {
            let fact = |key: &str| facts[key].as_str().unwrap_or_default().to_owned();
            let device = fact("device").parse().ok()?;
            let found = DiscoveredDevice {
                driver: fact("driver"),
                identity: fact("identity"),
                ..DiscoveredDevice::with_name(device, fact("name"))
            };
            let Self { floor, .. } = Self::read(&noise_path(&found.identity)?, &found, &fact("clock_policy"));
            (floor > 0.0).then_some((device, floor))
        };
        devices.filter_map(floor).collect()
    }

    /// Loads the noise of a device from a file.
    pub fn from_file(path: &Path, found: &DiscoveredDevice) -> Self {
        Self::read(path, found, &clock_policy(found))
    }

    fn read(path: &Path, found: &DiscoveredDevice, policy: &str) -> Self {
        let unused = |why: String| Self { floor: 0.0, note: Some(unused_note(found.device, &why)) };
        let noise = match cache::read::<DeviceNoise>(path) {
            Ok(Some(noise)) => noise,
            Ok(None) => return Self::default(),
            Err(why) => return unused(why),
        };
        match outdated_reason(&noise, found, policy, host::now()) {
            None => Self { floor: noise.middle_floor, note: None },
            Some(why) => unused(why),
        }
    }

    /// Margin for verdicts: the maximum of the requested margin and twice the median floor.
    pub fn margin(&self, requested: f64) -> f64 {
        requested.max(2.0 * self.floor)
    }
}

fn unused_note(device: Device, why: &str) -> String {
    format!("{device}: the saved noise floor is ignored: {why}; measure it with `calorimeter noise --device {device}`")
}

/// Returns the reason why saved noise does not apply to the device in its current state.
fn outdated_reason(
    noise: &DeviceNoise,
    found: &DiscoveredDevice,
    policy: &str,
    now: DateTime<Local>,
) -> Option<String> {
    if !(0.0..=MAX_FLOOR).contains(&noise.middle_floor) {
        return Some(format!("a floor of {:.0} % is implausible", 100.0 * noise.middle_floor));
    }
    if noise.version != NOISE_VERSION {
        return Some("it was measured by another version of this program".into());
    }
    if noise.identity != found.identity {
        return Some(format!("it belongs to another device, {}", noise.identity));
    }
    if noise.driver != found.driver {
        return Some(format!("it was measured with another driver ({}, now {})", noise.driver, found.driver));
    }
    if noise.policy != policy {
        let [then, now] = [&noise.policy, policy].map(|policy| if policy.is_empty() { "unknown" } else { policy });
        return Some(format!("clock and power settings differ ({then}; now {now})"));
    }
    let Ok(measured) = DateTime::parse_from_rfc3339(&noise.measured) else {
        return Some("its date is invalid".into());
    };
    let (age, day) = (now.signed_duration_since(measured), measured.date_naive());
    if age < -TimeDelta::days(MAX_CLOCK_SKEW_DAYS) {
        return Some(format!("its date {day} is in the future"));
    }
    (age > TimeDelta::days(MAX_AGE_DAYS))
        .then(|| format!("it was measured on {day}, more than {MAX_AGE_DAYS} days ago"))
}

/// Current clock settings of a device.
pub fn clock_policy(found: &DiscoveredDevice) -> String {
    let facts = found.facts();
    let sensors = platforms::for_device(found.device).sensors(found.device, &facts).ok();
    clock_notes::clock_policy(sensors.map(|source| source.policy()), facts.locked_clock)
}

/// Path of the saved noise of a device. `None` without a cache directory.
pub fn noise_path(identity: &str) -> Option<PathBuf> {
    Some(cache::cache_dir("noise")?.join(format!("{}.json", cache::file_name(identity))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_expires_with_device_driver_policy_and_age() {
        let found = DiscoveredDevice { driver: "1.0".into(), ..DiscoveredDevice::with_name(Device::Mock(0), "a GPU") };
        let (now, days) = (host::now(), |days| (host::now() - TimeDelta::days(days)).to_rfc3339());
        let noise = DeviceNoise {
            version: NOISE_VERSION,
            identity: "a GPU".into(),
            driver: "1.0".into(),
            policy: "power limit 700 W".into(),
            measured: days(29),
            ..DeviceNoise::default()
        };
        assert_eq!(outdated_reason(&noise, &found, "power limit 700 W", now), None);
        let from_another_clock = DeviceNoise { measured: (now + TimeDelta::hours(23)).to_rfc3339(), ..noise.clone() };
        assert_eq!(outdated_reason(&from_another_clock, &found, "power limit 700 W", now), None);
        for (noise, policy, why) in [
            (DeviceNoise { measured: days(31), ..noise.clone() }, "power limit 700 W", "more than 30 days ago"),
            (DeviceNoise { version: 0, ..noise.clone() }, "power limit 700 W", "another version of this program"),
            (
                DeviceNoise { middle_floor: 1.6, ..noise.clone() },
                "power limit 700 W",
                "a floor of 160 % is implausible",
            ),
            (DeviceNoise { middle_floor: -0.1, ..noise.clone() }, "power limit 700 W", "is implausible"),
            (DeviceNoise { measured: String::new(), ..noise.clone() }, "power limit 700 W", "date is invalid"),
            (DeviceNoise { measured: days(-2), ..noise.clone() }, "power limit 700 W", "in the future"),
            (
                DeviceNoise { driver: "0.9".into(), ..noise.clone() },
                "power limit 700 W",
                "another driver (0.9, now 1.0)",
            ),
            (DeviceNoise { identity: "another".into(), ..noise.clone() }, "power limit 700 W", "another device"),
            (noise, "power limit 700 W, clock locked at base", "now power limit 700 W, clock locked at base"),
        ] {
            let reason = outdated_reason(&noise, &found, policy, now).unwrap();
            assert!(reason.contains(why), "{reason}");
        }
    }
}
