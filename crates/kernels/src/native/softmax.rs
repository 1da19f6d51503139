//! Softmax of rows.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
    row_cut::RowCut,
    sizes::checked_size,
};
use crate::Dtype;

/// A plan of y = exp(x - largest) / the sum of these for each row of x, computed in f32.
#[derive(Debug)]
pub struct Softmax {
    kernel: Kernel,
    algorithm: String,
}

impl Softmax {
    /// Compiles for `rows` rows of `columns` elements.
    pub fn new(machine: &Arc<Machine>, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        let rows = checked_size("the number of rows", rows)?;
        let columns = checked_size("the length of a row", columns)?;
        let cut = RowCut::of_row(kind, columns);
        let name = format!("softmax_{kind}");
        let geometry = Geometry {
            // At most `rows`, which was checked.
            blocks: rows.div_ceil(cut.rows) as u32,
            threads: (cut.threads as u32, cut.rows as u32),
        };
        let extent = Extent::of_matrix(kind, rows, columns);
        let macros = macros(&name, kind, cut);
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::Softmax, &name, macros, extent, geometry)?,
            algorithm: cut.describe(&name, "row read twice"),
        })
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
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_way_to_cut_a_row() {
        for kind in Dtype::ALL {
            for columns in [1, 257, 768, 4096, 32768, 70001] {
                assert_compiles(Source::Softmax, &macros("softmax", kind, RowCut::of_row(kind, columns)));
            }
        }
    }
}
