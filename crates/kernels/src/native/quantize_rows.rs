//! e4m3 codes of rows.

use std::sync::Arc;

use super::{
    Machine, NativeError, Quantize, ScaleSource,
    gpu::ComputeCapability,
    kernel::{Extent, Geometry, Kernel},
    nvrtc::Source,
    row_cut::RowCut,
    sizes::checked_size,
};

/// With four accesses of 16 bytes in flight, a block of 512 threads holds 16384 columns.
const ELEMENTS_PER_THREAD: usize = 32;

impl Quantize {
    /// The e4m3 codes of x[rows, columns] in bf16, and one f32 scale per row: [`crate::rowwise`], to the bit.
    /// [`ScaleSource::Static`] writes a single scale.
    pub fn rows(machine: &Arc<Machine>, scales: ScaleSource, rows: usize, columns: usize) -> Result<Self, NativeError> {
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
            kernel: Kernel::prepare(machine, Source::QuantizeRows, &name, macros, extent, geometry)?,
            scales_bytes,
            algorithm: cut.describe(&name, "row read twice"),
        })
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
                assert_compiles(Source::QuantizeRows, &macros("quantize_rows", scales, cut));
            }
        }
    }
}
