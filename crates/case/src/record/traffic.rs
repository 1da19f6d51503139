//! Memory traffic from hardware counters.

use super::column::{CellReader, Column};
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
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "counted_read_bytes",
            field: "traffic.read_bytes",
            unit: "bytes",
            doc: "bytes read by one pass, from the hardware counters of the device memory; on CUDA, for fusion patterns and with `--profile`",
            read: CellReader::Number(|traffic| Some(traffic.read_bytes)),
        },
        Column {
            name: "counted_written_bytes",
            field: "traffic.written_bytes",
            unit: "bytes",
            doc: "bytes written by one pass, from the same counters",
            read: CellReader::Number(|traffic| Some(traffic.written_bytes)),
        },
    ];
}
