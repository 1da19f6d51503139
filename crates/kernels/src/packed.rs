//! Weights in codes that kernels multiply without unpacking them first.

use crate::Dtype;

/// What the codes of a packed weight w[n, k] are. Those of a row fill whole words, the first in the lowest bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WeightCodes {
    /// Integers of a byte, times one scale for each row. Rows are filled up to 32 codes.
    Int8,
    /// The same with e4m3, without NaN.
    E4m3,
    /// 4 bits: (code - 8) times a scale, plus a zero, one of each for so many codes along k, which must be a multiple of
    /// 32. Rows are filled up to whole groups.
    Int4 {
        /// Codes that share scale and zero.
        group: usize,
    },
}

/// Types of a product with a packed weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PackedForm {
    /// The type of x and y.
    pub kind: Dtype,
    /// What the weight's codes are.
    pub codes: WeightCodes,
    /// The type of its scales and zeros, which lie row by row without gaps.
    pub scale: Dtype,
}
