//! A device as it was found.

use crate::clock_notes;
use crate::worker::DeviceFacts;
use calorimeter_case::Device;

/// A device that could run cases.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscoveredDevice {
    /// Its handle.
    pub device: Device,
    /// What its maker calls it.
    pub name: String,
    /// Driver and versions.
    pub driver: String,
    /// Tells it from any other: kernels tuned on one are not used on another.
    pub identity: String,
    /// Whether it is a processor that imitates a GPU: never chosen unasked.
    pub software: bool,
    /// What its maker says that its memory moves, in 10⁹ bytes per second, where the driver tells.
    pub stated_gbps: Option<f64>,
    /// Size of its last cache in bytes, where it is known.
    pub cache: Option<u64>,
    /// Whether it is a GPU of Intel's, which torch calls `xpu`.
    pub intel: bool,
}

/// Larger than the last cache of nearly every GPU.
const UNKNOWN_CACHE: u64 = 128 << 20;

impl DiscoveredDevice {
    /// A device of which nothing is known but its name.
    pub fn named(device: Device, name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            device,
            driver: String::new(),
            identity: name.clone(),
            name,
            software: false,
            stated_gbps: None,
            cache: None,
            intel: false,
        }
    }

    /// The cache that buffer sets must exceed: its own, or a guess that is larger than most.
    pub fn cache_bytes(&self) -> u64 {
        self.cache.unwrap_or(UNKNOWN_CACHE)
    }

    /// Whether it does the same work in the same time as another one, as far as can be told without measuring.
    pub fn is_like(&self, other: &Self) -> bool {
        let of = |one: &Self| (one.name.clone(), one.driver.clone(), one.cache, one.stated_gbps.map(f64::to_bits));
        of(self) == of(other)
    }

    /// What tells it from devices that are not like it.
    pub fn name_and_driver(&self) -> String {
        if self.driver.is_empty() { self.name.clone() } else { format!("{}, {}", self.name, self.driver) }
    }

    /// What its workers are told of it.
    pub fn facts(&self) -> DeviceFacts {
        let Self { identity, driver, software, .. } = self.clone();
        let locked_clock = clock_notes::locked(&identity);
        DeviceFacts { identity, driver, software, cache_bytes: self.cache_bytes(), locked_clock }
    }
}
