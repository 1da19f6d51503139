//! Layer normalization of rows.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
    row_cut::RowCut,
    sizes::checked_size,
};
use crate::Dtype;

/// A plan of y = (x - mean) / sqrt(variance + 1e-5) for each row of x, without weights.
///
/// The statistics are taken in f32, the mean first and the variance around it, so that rows with a large mean lose
/// nothing.
#[derive(Debug)]
pub struct LayerNorm {
    kernel: Kernel,
    algorithm: String,
}

impl LayerNorm {
    /// What is added to the variance.
    pub const EPSILON: f32 = 1e-5;

    /// Compiles for `rows` rows of `columns` elements.
    pub fn new(machine: &Arc<Machine>, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        let rows = checked_size("the number of rows", rows)?;
        let columns = checked_size("the length of a row", columns)?;
        let cut = RowCut::of_row(kind, columns);
        let name = format!("layer_norm_{kind}");
        let geometry = Geometry {
            // At most `rows`, which was checked.
            blocks: rows.div_ceil(cut.rows) as u32,
            threads: (cut.threads as u32, cut.rows as u32),
        };
        Ok(Self {
            kernel: Kernel::prepare(
                machine,
                Source::LayerNorm,
                &name,
                macros(&name, kind, cut),
                Extent::of_matrix(kind, rows, columns),
                geometry,
            )?,
            algorithm: cut.describe(&name, "row read three times"),
        })
    }

    /// Bytes of the input, and of the output.
    pub fn bytes(&self) -> usize {
        self.kernel.bytes()
    }

    /// Enqueues one run.
    pub fn enqueue(&self, x: &Buffer, y: &mut Buffer) -> Result<(), NativeError> {
        self.kernel.enqueue(&x.memory, &mut y.memory)
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

fn macros(name: &str, kind: Dtype, cut: RowCut) -> Vec<String> {
    let mut macros = common_macros(name, kind, cut.width);
    macros.extend(cut.macros());
    macros.push(format!("EPSILON={:e}f", LayerNorm::EPSILON));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_way_to_cut_a_row() {
        for kind in Dtype::ALL {
            for columns in [1, 257, 768, 1025, 4096, 32768, 65536, 70001] {
                assert_compiles(Source::LayerNorm, &macros("layer_norm", kind, RowCut::of_row(kind, columns)));
            }
        }
    }
}
