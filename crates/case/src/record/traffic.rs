//! Bytes by the counters of a device's memory.

use super::column::{Column, Read};
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

impl Traffic {
    /// Its columns in tables, in their order.
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "counted_read_bytes",
            field: "traffic.read_bytes",
            unit: "bytes",
            doc: "read by one pass, by the hardware counters of the device's memory; on CUDA, for patterns of fusion and with `--profile`",
            read: Read::Number(|traffic| Some(traffic.read_bytes)),
        },
        Column {
            name: "counted_written_bytes",
            field: "traffic.written_bytes",
            unit: "bytes",
            doc: "written by one pass, from the same counters",
            read: Read::Number(|traffic| Some(traffic.written_bytes)),
        },
    ];
}
