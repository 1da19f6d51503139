//! e4m3 codes of rows.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError,
    gpu::ComputeCapability,
    kernel::{Extent, Geometry, Kernel, checked_size},
    nvrtc::Source,
    row_cut::RowCut,
};
use crate::rowwise::STATIC_SCALE;

/// Where the scales of quantised numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScaleSource {
    /// The largest magnitude of each row, or of each column.
    Largest,
    /// [`STATIC_SCALE`] for everything.
    Static,
}

impl ScaleSource {
    /// How many scales there are for so many rows or columns.
    pub(super) fn count(self, lines: usize) -> usize {
        match self {
            Self::Largest => lines,
            Self::Static => 1,
        }
    }

    pub(super) fn macros(self) -> Vec<String> {
        match self {
            Self::Largest => Vec::new(),
            Self::Static => vec![format!("SCALE={STATIC_SCALE:e}f")],
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Largest => "quantise",
            Self::Static => "quantise_static",
        }
    }
}

/// A plan of the e4m3 codes of x[rows, columns] in bf16, and of one f32 scale per row: [`crate::rowwise`], to the bit.
#[derive(Debug)]
pub struct QuantiseRows {
    kernel: Kernel,
    scales_bytes: usize,
    algorithm: String,
}

/// With four accesses of 16 bytes in flight, a block of 512 threads holds 16384 columns.
const ELEMENTS_PER_THREAD: usize = 32;

impl QuantiseRows {
    /// Compiles for `rows` rows of `columns` elements. [`ScaleSource::Static`] writes a single scale.
    pub fn new(machine: &Arc<Machine>, scales: ScaleSource, rows: usize, columns: usize) -> Result<Self, NativeError> {
        machine.require("e4m3", ComputeCapability::E4M3)?;
        let rows = checked_size("the number of rows", rows)?;
        let columns = checked_size("the length of a row", columns)?;
        let cut = RowCut::new(columns, WIDEST, ELEMENTS_PER_THREAD);
        let name = format!("{}_rows", scales.name());
        let geometry = Geometry {
            // At most `rows`, which was checked.
            blocks: rows.div_ceil(cut.rows) as u32,
            threads: (cut.threads as u32, cut.rows as u32),
        };
        let scales_bytes = 4 * scales.count(rows);
        let extent = Extent {
            reads: vec![("x", 2 * rows * columns)],
            writes: vec![("codes", rows * columns), ("scales", scales_bytes)],
            sizes: (rows as u64, columns as u64),
        };
        let macros = macros(&name, scales, cut);
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::QuantiseRows, &name, macros, extent, geometry)?,
            scales_bytes,
            algorithm: cut.describe(&name, "row read twice"),
        })
    }

    /// Bytes of the input.
    pub fn x_bytes(&self) -> usize {
        self.kernel.bytes()
    }

    /// Bytes of the codes.
    pub fn codes_bytes(&self) -> usize {
        self.x_bytes() / 2
    }

    /// Bytes of the scales.
    pub fn scales_bytes(&self) -> usize {
        self.scales_bytes
    }

    /// Enqueues one run.
    pub fn enqueue(&self, x: &Buffer, codes: &mut Buffer, scales: &mut Buffer) -> Result<(), NativeError> {
        self.kernel.enqueue_all(&[&x.memory], &mut [&mut codes.memory, &mut scales.memory])
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

/// Elements of bf16 in the widest access.
const WIDEST: usize = 8;

fn macros(name: &str, scales: ScaleSource, cut: RowCut) -> Vec<String> {
    let mut macros = vec![format!("KERNEL={name}"), format!("WIDTH={}", cut.width)];
    macros.extend(cut.macros());
    macros.extend(scales.macros());
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_way_to_cut_a_row() {
        for scales in [ScaleSource::Largest, ScaleSource::Static] {
            for columns in [1, 31, 1000, 1025, 4096, 16384, 32768, 65536, 70001] {
                let cut = RowCut::new(columns, WIDEST, ELEMENTS_PER_THREAD);
                assert_compiles(Source::QuantiseRows, &macros("quantise_rows", scales, cut));
            }
        }
    }
}
