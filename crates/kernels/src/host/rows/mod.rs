//! Operators that make a row out of rows, a number out of numbers, or a mean over all rows.
//!
//! Data flow: each thread takes whole rows, or pieces of 512 numbers where every number stands alone. What is read twice
//! stays in its cache, numbers in bf16 are widened there, and each result is rounded once. Traffic: every operand once.
//! Roofline: the memory's.

mod elements;
mod functions;
mod losses;
mod norms;
mod pass;
mod softmax;
mod sums;

pub use norms::layer_norm;

use super::float_set::FloatSet;
use super::numbers::Numbers;
use elements::{Add, Axpy, CoarseGelu, Gelu, GeluTanh, Sigmoid, Silu, SiluMul};
use losses::{CrossEntropy, Dot, SquaredError};
use norms::{AddLayerNorm, LayerNorm, LayerNormGelu, RmsNorm};
use pass::{mean, of_elements, of_rows, total};
use softmax::Softmax;

/// What is computed, with its inputs in order. Sums are in f32 along a row and in f64 over rows.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Rowwise {
    /// `x`, gain, bias: rows with mean 0 and variance 1, times the gain, plus the bias.
    LayerNorm,
    /// `x`, `y`, gain, bias: the sum of the two, and its layer normalization.
    AddLayerNorm,
    /// `x`, gain, bias: GELU of the layer normalization.
    LayerNormGelu,
    /// `x`, gain: rows with mean square 1, times the gain.
    RmsNorm {
        /// What is added to the mean square.
        epsilon: f32,
    },
    /// `x`: exponentials as shares of their sum.
    Softmax,
    /// `x`: x Φ(x).
    Gelu,
    /// `x`: its approximation by a hyperbolic tangent.
    GeluTanh,
    /// `x`: x sigmoid(x).
    Silu,
    /// `x`: 1 / (1 + exp(-x)).
    Sigmoid,
    /// `x`, `y`: silu(x) y.
    SiluMul,
    /// `x`, `y`: their sum.
    Add,
    /// `x`, `y`: the factor times `x`, plus `y`.
    Axpy {
        /// What `x` is multiplied with.
        factor: f32,
    },
    /// `x`, `y`: the sum of all products.
    Dot,
    /// Logits, and the number of each row's class as f32: the mean of what classes are short of certainty.
    CrossEntropy,
    /// `x`, `y`: the mean of the squared differences.
    SquaredError,
}

impl Rowwise {
    /// Reads inputs and writes outputs of so many columns, all of it before it returns.
    ///
    /// ```
    /// use calorimeter_kernels::host::{Numbers, Rowwise};
    ///
    /// let x = Numbers::F32(vec![0.0, 0.0, 7.0, 7.0]);
    /// let mut y = [Numbers::F32(vec![0.0; 4])];
    /// Rowwise::Softmax.run(&[x], 2, &mut y);
    /// assert_eq!(y, [Numbers::F32(vec![0.5; 4])]);
    /// ```
    ///
    /// # Panics
    /// If there are not as many inputs and outputs as this has, their sizes do not fit, or inputs of whole rows are stored in two ways.
    pub fn run(self, inputs: &[Numbers], columns: usize, outputs: &mut [Numbers]) {
        self.by(FloatSet::widest(), inputs, columns, outputs);
    }

    fn by(self, set: FloatSet, inputs: &[Numbers], columns: usize, outputs: &mut [Numbers]) {
        match self {
            Self::LayerNorm => of_rows(set, LayerNorm, inputs, columns, outputs),
            Self::AddLayerNorm => of_rows(set, AddLayerNorm, inputs, columns, outputs),
            Self::LayerNormGelu => of_rows(set, LayerNormGelu, inputs, columns, outputs),
            Self::RmsNorm { epsilon } => of_rows(set, RmsNorm { epsilon }, inputs, columns, outputs),
            Self::Softmax => {
                let coarse = matches!(outputs, [Numbers::Bf16(_)]);
                of_rows(set, Softmax { coarse }, inputs, columns, outputs);
            }
            Self::Gelu if matches!(outputs, [Numbers::Bf16(_)]) => of_elements(set, CoarseGelu, inputs, outputs),
            Self::Gelu => of_elements(set, Gelu, inputs, outputs),
            Self::GeluTanh => of_elements(set, GeluTanh, inputs, outputs),
            Self::Silu => of_elements(set, Silu, inputs, outputs),
            Self::Sigmoid => of_elements(set, Sigmoid, inputs, outputs),
            Self::SiluMul => of_elements(set, SiluMul, inputs, outputs),
            Self::Add => of_elements(set, Add, inputs, outputs),
            Self::Axpy { factor } => of_elements(set, Axpy { factor }, inputs, outputs),
            Self::Dot => total(set, Dot, inputs, outputs),
            Self::CrossEntropy => mean(set, CrossEntropy, inputs, columns, outputs),
            Self::SquaredError => mean(set, SquaredError, inputs, columns, outputs),
        }
    }

    /// What a record calls the kernel.
    pub fn kernel(self) -> String {
        let (set, threads) = (FloatSet::widest().name(), rayon::current_num_threads());
        format!("rows by {set} on {threads} threads")
    }
}

#[cfg(test)]
mod tests;
