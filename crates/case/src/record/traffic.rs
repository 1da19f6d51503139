//! Bytes by the counters of a device's memory.

use serde::{Deserialize, Serialize};

/// Bytes of one run by the hardware counters of the device's memory: what caches served is not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Read from the memory.
    pub read_bytes: f64,
    /// Written to it.
    pub written_bytes: f64,
}

impl Traffic {
    /// Both directions together.
    pub fn bytes(&self) -> f64 {
        self.read_bytes + self.written_bytes
    }
}
