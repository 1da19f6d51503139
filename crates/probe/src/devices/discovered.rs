//! Discovered device.

use super::facts::DeviceFacts;
use crate::clock_notes;
use calorimeter_case::Device;

/// Device that could run cases.
#[derive(Debug, Clone, PartialEq)]
pub struct DiscoveredDevice {
    /// Handle.
    pub device: Device,
    /// Name from the vendor.
    pub name: String,
    /// Driver and its version.
    pub driver: String,
    /// Unique identity; tuned kernels are not shared between identities.
    pub identity: String,
    /// True for a GPU emulated on a processor, which is never selected by default.
    pub software: bool,
    /// Memory bandwidth stated by the vendor in 10⁹ bytes per second, if the driver reports it.
    pub stated_gbps: Option<f64>,
    /// Size of the last-level cache in bytes, if known.
    pub cache: Option<u64>,
    /// True for an Intel GPU, which torch calls `xpu`.
    pub intel: bool,
}

/// Assumed cache size; larger than that of nearly every GPU.
const DEFAULT_CACHE_BYTES: u64 = 128 << 20;

impl DiscoveredDevice {
    /// Creates a device of which only the name is known.
    pub fn with_name(device: Device, name: impl Into<String>) -> Self {
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

    /// Cache size that buffer sets must exceed: known or assumed.
    pub fn cache_bytes(&self) -> u64 {
        self.cache.unwrap_or(DEFAULT_CACHE_BYTES)
    }

    /// True if both devices should have equal times, judging by name, driver, cache and bandwidth.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        let of = |one: &Self| (one.name.clone(), one.driver.clone(), one.cache, one.stated_gbps.map(f64::to_bits));
        of(self) == of(other)
    }

    /// Name and driver, which distinguish it from devices that are not equivalent.
    pub fn name_and_driver(&self) -> String {
        if self.driver.is_empty() { self.name.clone() } else { format!("{}, {}", self.name, self.driver) }
    }

    /// Facts for its workers.
    pub fn facts(&self) -> DeviceFacts {
        let Self { identity, driver, software, .. } = self.clone();
        let locked_clock = clock_notes::locked_clock(&identity);
        DeviceFacts { identity, driver, software, cache_bytes: self.cache_bytes(), locked_clock }
    }
}
