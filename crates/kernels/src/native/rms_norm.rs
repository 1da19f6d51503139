//! Normalization of rows by their root mean square.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, common_macros},
    nvrtc::Source,
    row_cut::RowCut,
    sizes::checked_size,
};
use crate::Dtype;

/// What the gain is stored in, and what is added to the mean of squares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RmsForm {
    /// Whether the gain is f32 whatever the rows are, or of their type.
    pub gain_is_f32: bool,
    /// What is added to the mean of squares.
    pub epsilon: f32,
}

/// A plan of y = x / sqrt(mean of squares + epsilon) * gain for each row of x, computed in f32.
#[derive(Debug)]
pub struct RmsNorm {
    kernel: Kernel,
    algorithm: String,
}

impl RmsNorm {
    /// Compiles for `rows` rows of `columns` elements.
    pub fn new(
        machine: &Arc<Machine>,
        kind: Dtype,
        form: RmsForm,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        let rows = checked_size("the number of rows", rows)?;
        let columns = checked_size("the length of a row", columns)?;
        let cut = RowCut::of_row(kind, columns);
        let name = format!("rms_norm_{kind}");
        let geometry = Geometry {
            // At most `rows`, which was checked.
            blocks: rows.div_ceil(cut.rows) as u32,
            threads: (cut.threads as u32, cut.rows as u32),
        };
        let bytes = rows * columns * kind.width();
        let gain = columns * if form.gain_is_f32 { 4 } else { kind.width() };
        let extent = Extent {
            reads: vec![("x", bytes), ("gain", gain)],
            writes: vec![("y", bytes)],
            sizes: (rows as u64, columns as u64),
        };
        let macros = macros(&name, kind, form, cut);
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::RmsNorm, &name, macros, extent, geometry)?,
            algorithm: cut.describe(&name, "row read twice"),
        })
    }

    /// Enqueues one run; the gain has one factor for each column.
    pub fn enqueue(&self, x: &Buffer, gain: &Buffer, y: &mut Buffer) -> Result<(), NativeError> {
        self.kernel.enqueue_all(&[&x.memory, &gain.memory], &mut [&mut y.memory])
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

fn macros(name: &str, kind: Dtype, form: RmsForm, cut: RowCut) -> Vec<String> {
    let mut macros = common_macros(name, kind, cut.width);
    macros.extend(cut.macros());
    macros.push(format!("GAIN_F32={}", u8::from(form.gain_is_f32)));
    macros.push(format!("EPSILON={:e}f", form.epsilon));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_way_to_cut_a_row_and_every_gain() {
        for kind in Dtype::ALL {
            for columns in [1, 257, 768, 4096, 32768, 70001] {
                let form = RmsForm { gain_is_f32: columns % 2 == 0, epsilon: 1e-6 };
                assert_compiles(Source::RmsNorm, &macros("rms_norm", kind, form, RowCut::of_row(kind, columns)));
            }
        }
    }
}
