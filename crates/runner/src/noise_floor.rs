//! What is known of a device's noise, and the margin that follows from it.

use crate::cache;
use crate::devices::DiscoveredDevice;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What was found by comparing a computation with itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Noise {
    /// The device, e.g. `cuda:0`.
    pub device: String,
    /// Tells it from any other.
    pub identity: String,
    /// Driver and versions.
    pub driver: String,
    /// What was compared with itself.
    pub case: String,
    /// The clock.
    pub stopwatch: String,
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
    /// The margin that verdicts on this device use from now on.
    pub margin: f64,
    /// When.
    pub measured: String,
}

/// The margin for verdicts on a device: what was asked for, or twice the floor that was found there if that is more.
pub fn margin(found: &DiscoveredDevice, asked: f64) -> f64 {
    let noise = path(&found.identity).and_then(|path| cache::read::<Noise>(&path));
    let noise = noise.filter(|noise| noise.identity == found.identity && noise.driver == found.driver);
    asked.max(noise.map_or(0.0, |noise| 2.0 * noise.floor))
}

pub fn path(identity: &str) -> Option<PathBuf> {
    Some(cache::folder("noise")?.join(format!("{}.json", cache::file_name(identity))))
}
