//! Memory traffic from hardware counters.

use super::column::{Column, columns};
use serde::{Deserialize, Serialize};

/// Bytes of one pass by the hardware counters of the device memory; cache hits are not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Bytes read from memory.
    pub read_bytes: f64,
    /// Bytes written to memory.
    pub written_bytes: f64,
}

impl Traffic {
    /// Bytes in both directions.
    pub fn bytes(&self) -> f64 {
        self.read_bytes + self.written_bytes
    }
}

impl Traffic {
    /// Columns in tables, in order.
    pub const COLUMNS: &'static [Column<Self>] = columns! { |traffic|
        "counted_read_bytes" from "traffic.read_bytes" in "bytes": Number(Some(traffic.read_bytes)),
            "bytes read by one pass, from the hardware counters of the device memory; on CUDA, for fusion patterns and with `--profile`";
        "counted_written_bytes" from "traffic.written_bytes" in "bytes": Number(Some(traffic.written_bytes)),
            "bytes written by one pass, from the same counters";
    };
}
