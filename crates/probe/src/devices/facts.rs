//! Facts about a device that its workers need.

use calorimeter_timing::telemetry::LockedClock;
use serde::{Deserialize, Serialize};

/// Facts about a device, so that a worker need not discover devices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Unique identity of the device.
    pub identity: String,
    /// Driver and its version.
    pub driver: String,
    /// True for a GPU emulated on a processor.
    pub software: bool,
    /// Size in bytes of the cache that the buffer sets must exceed.
    pub cache_bytes: u64,
    /// Clock at which a run of this program has locked the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_clock: Option<LockedClock>,
}
