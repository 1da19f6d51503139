//! The gradients of a normalisation of rows by their root mean square.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError,
    column_sums::ColumnSums,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
    row_cut::RowCut,
    sizes::checked_size,
};
use crate::Dtype;

/// A plan of the gradients of x and of an f32 gain, given x, the gain and the gradient of the result.
#[derive(Debug)]
pub struct RmsNormGradient {
    kernel: Kernel,
    partial: Memory,
    of_gain: ColumnSums,
    algorithm: String,
}

impl RmsNormGradient {
    /// Compiles for `rows` rows of `columns` elements.
    pub fn new(
        machine: &Arc<Machine>,
        kind: Dtype,
        epsilon: f32,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        let rows = checked_size("the number of rows", rows)?;
        let columns = checked_size("the length of a row", columns)?;
        let cut = cut(kind, columns);
        let blocks = blocks(cut, rows);
        let workers = blocks * cut.rows;
        let name = format!("rms_norm_gradient_{kind}");
        let (bytes, partial) = (rows * columns * kind.width(), 4 * workers * columns);
        let extent = Extent {
            reads: vec![("x", bytes), ("gain", 4 * columns), ("dy", bytes)],
            writes: vec![("dx", bytes), ("partial", partial)],
            sizes: (rows as u64, columns as u64),
        };
        let geometry = Geometry { blocks: blocks as u32, threads: (cut.threads as u32, cut.rows as u32) };
        let macros = macros(&name, kind, epsilon, cut);
        let described = cut.describe(&name, "row read twice");
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::RmsNormGradient, &name, macros, extent, geometry)?,
            partial: Memory::allocate(machine.stream(), partial)?,
            of_gain: ColumnSums::new(machine, workers, columns)?,
            algorithm: format!("{described}, {blocks} blocks; then column_sums of {workers} rows"),
        })
    }

    /// Enqueues one run.
    pub fn enqueue(
        &mut self,
        x: &Buffer,
        gain: &Buffer,
        dy: &Buffer,
        dx: &mut Buffer,
        dgain: &mut Buffer,
    ) -> Result<(), NativeError> {
        let inputs = [&x.memory, &gain.memory, &dy.memory];
        self.kernel.enqueue_all(&inputs, &mut [&mut dx.memory, &mut self.partial])?;
        self.of_gain.enqueue(&self.partial, &mut dgain.memory)
    }

    /// The kernels and how they were cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

/// With both inputs and the sums of their columns, more would not fit the registers.
const MOST_ELEMENTS_PER_THREAD: usize = 16;

fn cut(kind: Dtype, columns: usize) -> RowCut {
    let cut = RowCut::of_row(kind, columns);
    let pieces = cut.pieces.filter(|pieces| pieces * cut.width <= MOST_ELEMENTS_PER_THREAD);
    RowCut { pieces, ..cut }
}

/// As many blocks as run at once on the 132 multiprocessors of an H100 or H200, but none with so few rows that its sums are
/// what memory is busy with.
fn blocks(cut: RowCut, rows: usize) -> usize {
    const AT_ONCE: usize = 132 * 768;
    const LEAST_ROWS: usize = 4;
    (AT_ONCE / (cut.threads * cut.rows)).min(rows.div_ceil(cut.rows * LEAST_ROWS)).max(1)
}

fn macros(name: &str, kind: Dtype, epsilon: f32, cut: RowCut) -> Vec<String> {
    let mut macros = common_macros(name, kind, cut.width);
    macros.extend(cut.macros());
    macros.push(format!("EPSILON={epsilon:e}f"));
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
                assert_compiles(Source::RmsNormGradient, &macros("gradient", kind, 1e-6, cut(kind, columns)));
            }
        }
    }

    #[test]
    fn blocks_are_many_but_none_is_without_rows() {
        let at = |rows, columns| blocks(cut(Dtype::Bf16, columns), rows);
        assert_eq!((at(16384, 4096), at(1, 4096), at(5, 4096), at(16384, 32)), (396, 1, 2, 792));
    }
}
