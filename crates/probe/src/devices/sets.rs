//! Number of buffer sets per case.

use super::discovered::DiscoveredDevice;
use crate::platforms;
use calorimeter_case::{Device, Regime, buffer_sets};

/// Number of buffer sets that a case with `bytes` per launch needs in a regime.
pub fn buffer_set_count(found: &DiscoveredDevice, regime: Regime, bytes: u64) -> u32 {
    if platforms::for_device(found.device).memory().is_none() || !regime.rotates() {
        return 1;
    }
    buffer_sets(found.cache_bytes(), bytes, cache_multiple(found.device, found.software))
}

/// Ratio of the total size of all buffer sets to the cache. Smaller for shared memory, which other processes need, too.
pub fn cache_multiple(device: Device, software: bool) -> u64 {
    if platforms::for_device(device).shares_memory(software) { 2 } else { 3 }
}
