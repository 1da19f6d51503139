//! The gradient of a layer normalization of rows.

use std::sync::Arc;

use super::{
    Buffer, LayerNorm, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
    row_cut::RowCut,
    sizes::checked_size,
};
use crate::Dtype;

/// A plan of the gradient of x, given x and that of what [`LayerNorm`] made of it.
#[derive(Debug)]
pub struct LayerNormGradient {
    kernel: Kernel,
    algorithm: String,
}

impl LayerNormGradient {
    /// Compiles for `rows` rows of `columns` elements.
    pub fn new(machine: &Arc<Machine>, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        let rows = checked_size("the number of rows", rows)?;
        let columns = checked_size("the length of a row", columns)?;
        let cut = RowCut::of_pair(kind, columns);
        let name = format!("layer_norm_gradient_{kind}");
        let geometry = Geometry {
            // At most `rows`, which was checked.
            blocks: rows.div_ceil(cut.rows) as u32,
            threads: (cut.threads as u32, cut.rows as u32),
        };
        let bytes = rows * columns * kind.width();
        let extent = Extent {
            reads: vec![("x", bytes), ("dy", bytes)],
            writes: vec![("dx", bytes)],
            sizes: (rows as u64, columns as u64),
        };
        let macros = macros(&name, kind, cut);
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::LayerNormGradient, &name, macros, extent, geometry)?,
            algorithm: cut.describe(&name, "rows read three times"),
        })
    }

    /// Enqueues one run.
    pub fn enqueue(&self, x: &Buffer, dy: &Buffer, dx: &mut Buffer) -> Result<(), NativeError> {
        self.kernel.enqueue_all(&[&x.memory, &dy.memory], &mut [&mut dx.memory])
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
            for columns in [1, 257, 768, 4096, 16384, 32768, 70001] {
                let macros = macros("gradient", kind, RowCut::of_pair(kind, columns));
                assert_compiles(Source::LayerNormGradient, &macros);
            }
        }
    }
}
