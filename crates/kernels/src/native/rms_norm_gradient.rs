//! The gradients of a normalization of rows by their root mean square.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError, RmsForm,
    column_sums::ColumnSums,
    driver::Memory,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
    row_cut::RowCut,
    sizes::{MULTIPROCESSORS, checked_size},
};
use crate::Dtype;

/// A plan of the gradients of x and of the gain, given x, the gain and the gradient of the result. The gain's has its type.
#[derive(Debug)]
pub struct RmsNormGradient {
    kernel: Kernel,
    partial: Memory,
    of_gain: ColumnSums,
    algorithm: String,
}

/// What came back past a normalization, around which its input went too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Past {
    /// Nothing.
    Nothing,
    /// It is added to the gradient of the input.
    Added,
}

impl RmsNormGradient {
    /// Compiles for `rows` rows of `columns` elements.
    pub fn new(
        machine: &Arc<Machine>,
        kind: Dtype,
        form: RmsForm,
        past: Past,
        (rows, columns): (usize, usize),
    ) -> Result<Self, NativeError> {
        let rows = checked_size("the number of rows", rows)?;
        let columns = checked_size("the length of a row", columns)?;
        let cut = RowCut::of_pair(kind, columns);
        let blocks = blocks(cut, rows);
        let workers = blocks * cut.rows;
        let name = format!("rms_norm_gradient_{kind}");
        let (bytes, partial) = (rows * columns * kind.width(), 4 * workers * columns);
        let of_gain = if form.gain_is_f32 { Dtype::F32 } else { kind };
        let mut reads = vec![("x", bytes), ("gain", of_gain.width() * columns), ("dy", bytes)];
        if past == Past::Added {
            reads.push(("past", bytes));
        }
        let extent =
            Extent { reads, writes: vec![("dx", bytes), ("partial", partial)], sizes: (rows as u64, columns as u64) };
        let geometry = Geometry { blocks: blocks as u32, threads: (cut.threads as u32, cut.rows as u32) };
        let macros = macros(&name, kind, (form, past), cut);
        let described = cut.describe(&name, "row read twice");
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::RmsNormGradient, &name, macros, extent, geometry)?,
            partial: Memory::allocate(machine.stream(), partial)?,
            of_gain: ColumnSums::new(machine, of_gain, workers, columns)?,
            algorithm: format!("{described}, {blocks} blocks; then column_sums of {workers} rows"),
        })
    }

    /// Enqueues one run, of what came back past it too if the plan was made for that.
    pub fn enqueue(
        &mut self,
        [x, gain, dy]: [&Buffer; 3],
        past: Option<&Buffer>,
        dx: &mut Buffer,
        dgain: &mut Buffer,
    ) -> Result<(), NativeError> {
        let inputs: Vec<_> = [x, gain, dy].into_iter().chain(past).map(|input| &input.memory).collect();
        self.kernel.enqueue_all(&inputs, &mut [&mut dx.memory, &mut self.partial])?;
        self.of_gain.enqueue(&self.partial, &mut dgain.memory)
    }

    /// The kernels and how they were cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

/// As many blocks as run at once on all multiprocessors, but none with so few rows that its sums are
/// what memory is busy with.
fn blocks(cut: RowCut, rows: usize) -> usize {
    const AT_ONCE: usize = MULTIPROCESSORS * 768;
    const LEAST_ROWS: usize = 4;
    (AT_ONCE / (cut.threads * cut.rows)).min(rows.div_ceil(cut.rows * LEAST_ROWS)).max(1)
}

fn macros(name: &str, kind: Dtype, (form, past): (RmsForm, Past), cut: RowCut) -> Vec<String> {
    let mut macros = common_macros(name, kind, cut.width);
    macros.extend(cut.macros());
    macros.push(format!("GAIN_F32={}", u8::from(form.gain_is_f32)));
    macros.push(format!("ADDED={}", u8::from(past == Past::Added)));
    macros.push(format!("EPSILON={:e}f", form.epsilon));
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
                for (gain_is_f32, past) in [(true, Past::Nothing), (false, Past::Added)] {
                    let form = (RmsForm { gain_is_f32, epsilon: 1e-6 }, past);
                    assert_compiles(
                        Source::RmsNormGradient,
                        &macros("gradient", kind, form, RowCut::of_pair(kind, columns)),
                    );
                }
            }
        }
    }

    #[test]
    fn blocks_are_many_but_none_is_without_rows() {
        let at = |rows, columns| blocks(RowCut::of_pair(Dtype::Bf16, columns), rows);
        assert_eq!((at(16384, 4096), at(1, 4096), at(5, 4096), at(16384, 32)), (396, 1, 2, 792));
    }
}
