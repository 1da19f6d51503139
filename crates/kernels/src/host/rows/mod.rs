//! Row-wise, element-wise and reducing operators.
//!
//! Data flow: each thread processes whole rows, or chunks of 512 elements for element-wise operators. Data that is read
//! twice stays in the cache; bf16 is widened there, and every result is rounded once. Traffic: every operand once.
//! Roofline: memory bandwidth.

mod elements;
mod functions;
mod losses;
mod norms;
mod pass;
mod softmax;
mod sums;

pub use norms::layer_norm;

use super::float_isa::FloatIsa;
use super::float_vec::FloatVec;
use elements::{Add, Axpy, CoarseGelu, Gelu, GeluTanh, Sigmoid, Silu, SiluMul};
use losses::{CrossEntropyRow, DotRow, SquaredErrorRow};
use norms::{AddLayerNormRow, LayerNormGeluRow, LayerNormRow, RmsNormRow};
use pass::{map_elements, map_rows, mean_of_rows, sum_of_chunks};
use softmax::SoftmaxRow;

/// Operator, with its inputs in order. Sums are accumulated in f32 along a row and in f64 over rows.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum RowwiseOperator {
    /// `x`, gain, bias: rows normalized to mean 0 and variance 1, times the gain, plus the bias.
    LayerNorm,
    /// `x`, `y`, gain, bias: the sum of `x` and `y`, and its layer normalization.
    AddLayerNorm,
    /// `x`, gain, bias: GELU of the layer normalization.
    LayerNormGelu,
    /// `x`, gain: rows normalized to mean square 1, times the gain.
    RmsNorm {
        /// Constant added to the mean square.
        epsilon: f32,
    },
    /// `x`: softmax of each row.
    Softmax,
    /// `x`: x Φ(x).
    Gelu,
    /// `x`: GELU, approximated by tanh.
    GeluTanh,
    /// `x`: x sigmoid(x).
    Silu,
    /// `x`: 1 / (1 + exp(-x)).
    Sigmoid,
    /// `x`, `y`: silu(x) y.
    SiluMul,
    /// `x`, `y`: x + y.
    Add,
    /// `x`, `y`: factor * x + y.
    Axpy {
        /// Factor of `x`.
        factor: f32,
    },
    /// `x`, `y`: dot product of all elements.
    Dot,
    /// Logits, and the class index of each row as f32: mean cross-entropy.
    CrossEntropy,
    /// `x`, `y`: mean squared difference.
    SquaredError,
}

impl RowwiseOperator {
    /// Runs the operator synchronously on rows of `columns` elements.
    ///
    /// ```
    /// use calorimeter_kernels::host::{FloatVec, RowwiseOperator};
    ///
    /// let x = FloatVec::F32(vec![0.0, 0.0, 7.0, 7.0]);
    /// let mut y = [FloatVec::F32(vec![0.0; 4])];
    /// RowwiseOperator::Softmax.run(&[x], 2, &mut y);
    /// assert_eq!(y, [FloatVec::F32(vec![0.5; 4])]);
    /// ```
    ///
    /// # Panics
    /// If the number or sizes of inputs and outputs do not match the operator, or if inputs of whole rows have
    /// different dtypes.
    pub fn run(self, inputs: &[FloatVec], columns: usize, outputs: &mut [FloatVec]) {
        self.run_with_isa(FloatIsa::widest(), inputs, columns, outputs);
    }

    fn run_with_isa(self, set: FloatIsa, inputs: &[FloatVec], columns: usize, outputs: &mut [FloatVec]) {
        match self {
            Self::LayerNorm => map_rows(set, LayerNormRow, inputs, columns, outputs),
            Self::AddLayerNorm => map_rows(set, AddLayerNormRow, inputs, columns, outputs),
            Self::LayerNormGelu => map_rows(set, LayerNormGeluRow, inputs, columns, outputs),
            Self::RmsNorm { epsilon } => map_rows(set, RmsNormRow { epsilon }, inputs, columns, outputs),
            Self::Softmax => {
                let coarse = matches!(outputs, [FloatVec::Bf16(_)]);
                map_rows(set, SoftmaxRow { coarse }, inputs, columns, outputs);
            }
            Self::Gelu if matches!(outputs, [FloatVec::Bf16(_)]) => map_elements(set, CoarseGelu, inputs, outputs),
            Self::Gelu => map_elements(set, Gelu, inputs, outputs),
            Self::GeluTanh => map_elements(set, GeluTanh, inputs, outputs),
            Self::Silu => map_elements(set, Silu, inputs, outputs),
            Self::Sigmoid => map_elements(set, Sigmoid, inputs, outputs),
            Self::SiluMul => map_elements(set, SiluMul, inputs, outputs),
            Self::Add => map_elements(set, Add, inputs, outputs),
            Self::Axpy { factor } => map_elements(set, Axpy { factor }, inputs, outputs),
            Self::Dot => sum_of_chunks(set, DotRow, inputs, outputs),
            Self::CrossEntropy => mean_of_rows(set, CrossEntropyRow, inputs, columns, outputs),
            Self::SquaredError => mean_of_rows(set, SquaredErrorRow, inputs, columns, outputs),
        }
    }

    /// Description of the kernel in records.
    pub fn kernel(self) -> String {
        let (set, threads) = (FloatIsa::widest().name(), rayon::current_num_threads());
        format!("rows by {set} on {threads} threads")
    }
}

#[cfg(test)]
mod tests;
