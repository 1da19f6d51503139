//! How many sets of buffers a case goes through on a device.

use super::discovered::DiscoveredDevice;
use crate::platforms;
use calorimeter_case::{Device, Regime, buffer_sets};

/// How many buffer sets a case needs in a regime, if one run touches so many bytes.
pub fn sets(found: &DiscoveredDevice, regime: Regime, bytes: u64) -> u32 {
    if platforms::of(found.device).is_scripted() || !regime.rotates() {
        return 1;
    }
    buffer_sets(found.cache_bytes(), bytes, times_the_cache(found.device, found.software))
}

/// How many times the cache all buffer sets together should hold. The memory of a processor is not for them alone.
pub fn times_the_cache(device: Device, software: bool) -> u64 {
    if platforms::of(device).shares_memory(software) { 2 } else { 3 }
}
