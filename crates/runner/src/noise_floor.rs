//! What is known of a device's noise, and the margin that follows from it.

use crate::cache;
use crate::clock_notes;
use crate::devices::DiscoveredDevice;
use crate::host;
use crate::platforms;
use calorimeter_case::Device;
use chrono::{DateTime, Local, TimeDelta};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A machine changes: after so many days its noise is measured again.
const LASTS_DAYS: i64 = 30;

/// Clocks of machines that share a home differ, but not by more than this.
const AHEAD_DAYS: i64 = 1;

/// What the figures mean; raised when they come to mean something else.
pub const VERSION: u32 = 1;

/// A floor above this would make everything the same: a verdict is of differences twice as large.
const MOST: f64 = 0.4;

/// What was found by comparing workloads with themselves. Files of early versions, which know no policy, are outdated.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Noise {
    /// What its figures mean: [`VERSION`].
    pub version: u32,
    /// The device, e.g. `cuda:0`.
    pub device: String,
    /// Tells it from any other.
    pub identity: String,
    /// Driver and versions.
    pub driver: String,
    /// How its clocks were set.
    pub policy: String,
    /// When.
    pub measured: String,
    /// Worker processes that the comparisons were spread over.
    pub processes: u32,
    /// What was compared with itself.
    pub workloads: Vec<WorkloadNoise>,
    /// Of all comparisons together.
    #[serde(flatten)]
    pub total: Rates,
    /// The middle one of the workloads' floors: one that cannot be timed well here says nothing of the others.
    pub middle_floor: f64,
    /// The margin that verdicts on this device use from now on.
    pub margin: f64,
}

/// The noise of one workload at one size.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WorkloadNoise {
    /// What was compared with itself.
    pub case: String,
    /// The clock.
    pub stopwatch: String,
    /// What came of it.
    #[serde(flatten)]
    pub rates: Rates,
}

/// What came of comparisons of a thing with itself.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rates {
    /// Comparisons made.
    pub comparisons: u32,
    /// Share of them that found a difference larger than the margin, where there is none.
    pub false_verdict_rate: f64,
    /// Share of them whose 95 % interval does not hold 1.
    pub interval_miss_rate: f64,
    /// Share of them that ended as SAME; the rest was inconclusive.
    pub same_rate: f64,
    /// 95 % of the ratios were within this share of 1.
    pub floor: f64,
}

/// What verdicts on a device go by.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Floor {
    floor: f64,
    /// Why what was once found is not used.
    pub note: Option<String>,
}

impl Floor {
    /// What was found on this device, as long as it holds.
    pub fn of(found: &DiscoveredDevice) -> Self {
        path(&found.identity).map_or_else(Self::default, |path| Self::kept(&path, found))
    }

    /// What was found on a device of an earlier run, as far as it holds for the policy of clocks of then.
    pub fn under(found: &DiscoveredDevice, policy: &str) -> Self {
        path(&found.identity).map_or_else(Self::default, |path| Self::read(&path, found, policy))
    }

    /// What a file says of this device.
    pub fn kept(path: &Path, found: &DiscoveredDevice) -> Self {
        Self::read(path, found, &policy(found))
    }

    fn read(path: &Path, found: &DiscoveredDevice, policy: &str) -> Self {
        let unused = |why: String| Self { floor: 0.0, note: Some(note(found.device, &why)) };
        let noise = match cache::read::<Noise>(path) {
            Ok(Some(noise)) => noise,
            Ok(None) => return Self::default(),
            Err(why) => return unused(why),
        };
        match outdated(&noise, found, policy, host::now()) {
            None => Self { floor: noise.middle_floor, note: None },
            Some(why) => unused(why),
        }
    }

    /// The margin for verdicts: what was asked for, or twice the middle floor that was found if that is more.
    pub fn margin(&self, asked: f64) -> f64 {
        asked.max(2.0 * self.floor)
    }
}

fn note(device: Device, why: &str) -> String {
    format!(
        "{device}: the noise that was once found is not used, because {why}; see `calorimeter noise --device {device}`"
    )
}

/// Why noise says nothing of a device as it is now.
fn outdated(noise: &Noise, found: &DiscoveredDevice, policy: &str, now: DateTime<Local>) -> Option<String> {
    if !(0.0..=MOST).contains(&noise.middle_floor) {
        return Some(format!("ratios that differ by {:.0} % are not noise", 100.0 * noise.middle_floor));
    }
    if noise.version != VERSION {
        return Some("another version of this program found it".into());
    }
    if noise.identity != found.identity {
        return Some(format!("it is that of another device, {}", noise.identity));
    }
    if noise.driver != found.driver {
        return Some(format!("it was found under another driver ({}, now {})", noise.driver, found.driver));
    }
    if noise.policy != policy {
        let [then, now] = [&noise.policy, policy].map(|policy| if policy.is_empty() { "unknown" } else { policy });
        return Some(format!("clocks and power were set differently ({then}; now {now})"));
    }
    let Ok(measured) = DateTime::parse_from_rfc3339(&noise.measured) else {
        return Some("nobody knows when it was found".into());
    };
    let (age, day) = (now.signed_duration_since(measured), measured.date_naive());
    if age < -TimeDelta::days(AHEAD_DAYS) {
        return Some(format!("it is from the future, {day}"));
    }
    (age > TimeDelta::days(LASTS_DAYS)).then(|| format!("it was found on {day}, more than {LASTS_DAYS} days ago"))
}

/// How a device's clocks are set at this moment.
pub fn policy(found: &DiscoveredDevice) -> String {
    let facts = found.facts();
    let sensors = platforms::of(found.device).sensors(found.device, &facts).ok();
    clock_notes::policy(sensors.map(|source| source.policy()), facts.locked_clock)
}

pub fn path(identity: &str) -> Option<PathBuf> {
    Some(cache::folder("noise")?.join(format!("{}.json", cache::file_name(identity))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_holds_for_one_device_one_driver_one_policy_and_a_month() {
        let found = DiscoveredDevice { driver: "1.0".into(), ..DiscoveredDevice::named(Device::Mock(0), "a GPU") };
        let (now, days) = (host::now(), |days| (host::now() - TimeDelta::days(days)).to_rfc3339());
        let noise = Noise {
            version: VERSION,
            identity: "a GPU".into(),
            driver: "1.0".into(),
            policy: "power limit 700 W".into(),
            measured: days(29),
            ..Noise::default()
        };
        assert_eq!(outdated(&noise, &found, "power limit 700 W", now), None);
        let from_another_clock = Noise { measured: (now + TimeDelta::hours(23)).to_rfc3339(), ..noise.clone() };
        assert_eq!(outdated(&from_another_clock, &found, "power limit 700 W", now), None);
        for (noise, policy, why) in [
            (Noise { measured: days(31), ..noise.clone() }, "power limit 700 W", "more than 30 days ago"),
            (Noise { version: 0, ..noise.clone() }, "power limit 700 W", "another version of this program"),
            (Noise { middle_floor: 1.6, ..noise.clone() }, "power limit 700 W", "differ by 160 % are not noise"),
            (Noise { middle_floor: -0.1, ..noise.clone() }, "power limit 700 W", "are not noise"),
            (Noise { measured: String::new(), ..noise.clone() }, "power limit 700 W", "nobody knows when"),
            (Noise { measured: days(-2), ..noise.clone() }, "power limit 700 W", "from the future"),
            (Noise { driver: "0.9".into(), ..noise.clone() }, "power limit 700 W", "another driver (0.9, now 1.0)"),
            (Noise { identity: "another".into(), ..noise.clone() }, "power limit 700 W", "another device"),
            (noise, "power limit 700 W, clock locked at base", "now power limit 700 W, clock locked at base"),
        ] {
            let told = outdated(&noise, &found, policy, now).unwrap();
            assert!(told.contains(why), "{told}");
        }
    }
}
