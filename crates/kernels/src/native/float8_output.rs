//! Output of float8 matmuls.

use crate::Dtype;

/// Treatment of the accumulators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Float8Output {
    /// Rounded to this dtype.
    Plain(Dtype),
    /// Multiplied by the f32 scales of row and column, and rounded to this dtype.
    Scaled(Dtype),
    /// Multiplied by the scales of row and column, and added to an f32 addend.
    ScaledAdded,
}

impl Float8Output {
    /// Output dtype.
    pub const fn kind(self) -> Dtype {
        match self {
            Self::Plain(kind) | Self::Scaled(kind) => kind,
            Self::ScaledAdded => Dtype::F32,
        }
    }

    /// Number of inputs of the matmul: x and w, then row and column scales, then the addend.
    pub const fn inputs(self) -> usize {
        match self {
            Self::Plain(_) => 2,
            Self::Scaled(_) => 4,
            Self::ScaledAdded => 5,
        }
    }
}
