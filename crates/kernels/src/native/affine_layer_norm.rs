//! Layer normalization of rows with gain and bias, and what often stands before and after it.

use std::sync::Arc;

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel, common_macros, widest},
    nvrtc::Source,
    row_cut::RowCut,
    sizes::checked_size,
};
use crate::Dtype;

/// What stands before the normalization, or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NormForm {
    /// Nothing: x, gain, bias to y.
    Alone,
    /// GELU of the result: x, gain, bias to y.
    ThenGelu,
    /// The sum of two inputs, before it is rounded: x, addend, gain, bias to the sum and y.
    OfSum,
}

impl NormForm {
    /// Its name.
    const fn name(self) -> &'static str {
        match self {
            Self::Alone => "layer_norm_affine",
            Self::ThenGelu => "layer_norm_affine_gelu",
            Self::OfSum => "add_layer_norm_affine",
        }
    }

    /// The function of the CUDA source that is applied last.
    const fn activation(self) -> &'static str {
        match self {
            Self::ThenGelu => "gelu",
            Self::Alone | Self::OfSum => "nothing",
        }
    }
}

/// A plan of (x - mean) / sqrt(variance + epsilon) * gain + bias for each row, computed in f32.
#[derive(Debug)]
pub struct AffineLayerNorm {
    kernel: Kernel,
    algorithm: String,
}

impl AffineLayerNorm {
    /// Compiles for `rows` rows of `columns` elements.
    pub fn new(
        machine: &Arc<Machine>,
        kind: Dtype,
        form: NormForm,
        epsilon: f32,
        (rows, columns): (usize, usize),
    ) -> Result<Self, NativeError> {
        let rows = checked_size("the number of rows", rows)?;
        let columns = checked_size("the length of a row", columns)?;
        let cut = cut(kind, columns);
        let name = format!("{}_{kind}", form.name());
        let geometry = Geometry {
            // At most `rows`, which was checked.
            blocks: rows.div_ceil(cut.rows) as u32,
            threads: (cut.threads as u32, cut.rows as u32),
        };
        let (whole, row) = (rows * columns * kind.width(), columns * kind.width());
        let (mut reads, mut writes) = (vec![("x", whole)], vec![("y", whole)]);
        if form == NormForm::OfSum {
            reads.push(("addend", whole));
            writes.insert(0, ("sum", whole));
        }
        reads.extend([("gain", row), ("bias", row)]);
        let extent = Extent { reads, writes, sizes: (rows as u64, columns as u64) };
        let macros = macros(&name, kind, form, epsilon, cut, (rows, columns));
        Ok(Self {
            kernel: Kernel::prepare(machine, Source::AffineLayerNorm, &name, macros, extent, geometry)?,
            algorithm: cut.describe(&name, "row read three times"),
        })
    }

    /// Enqueues one run, on the operands of the form in its order.
    pub fn enqueue(&self, inputs: &[Buffer], outputs: &mut [Buffer]) -> Result<(), NativeError> {
        let inputs: Vec<_> = inputs.iter().map(|input| &input.memory).collect();
        let mut outputs: Vec<_> = outputs.iter_mut().map(|output| &mut output.memory).collect();
        self.kernel.enqueue_all(&inputs, &mut outputs)
    }

    /// The kernel and how it was cut up.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

/// Few warps for a row: each adds to what they must tell each other.
fn cut(kind: Dtype, columns: usize) -> RowCut {
    RowCut::new(columns, widest(kind), 4 * widest(kind))
}

fn macros(name: &str, kind: Dtype, form: NormForm, epsilon: f32, cut: RowCut, size: (usize, usize)) -> Vec<String> {
    let mut macros = common_macros(name, kind, cut.width);
    macros.extend(cut.macros());
    macros.push(cut.whole(size));
    macros.push(format!("EPSILON={epsilon:e}f"));
    macros.push(format!("RESIDUAL={}", u8::from(form == NormForm::OfSum)));
    macros.push(format!("ACTIVATE={}", form.activation()));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_every_form_and_way_to_cut_a_row() {
        for kind in Dtype::ALL {
            for form in [NormForm::Alone, NormForm::ThenGelu, NormForm::OfSum] {
                for columns in [257, 4096, 70001] {
                    let macros = macros("affine_layer_norm", kind, form, 1e-5, cut(kind, columns), (64, columns));
                    assert_compiles(Source::AffineLayerNorm, &macros);
                }
            }
        }
    }
}
