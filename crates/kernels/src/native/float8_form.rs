//! What comes of sums of products of e4m3 codes.

use crate::Dtype;

/// What becomes of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Float8Output {
    /// It is rounded to this type.
    Plain(Dtype),
    /// It is multiplied by the f32 scales of its row and its column, and rounded to this type.
    Scaled(Dtype),
    /// It is multiplied by the scales of its row and its column, and added to an f32.
    Added,
}

impl Float8Output {
    /// The type of the output.
    pub const fn kind(self) -> Dtype {
        match self {
            Self::Plain(kind) | Self::Scaled(kind) => kind,
            Self::Added => Dtype::F32,
        }
    }

    /// How many inputs a product has: x and w, the scales of the rows and of the columns, and what is added.
    pub const fn inputs(self) -> usize {
        match self {
            Self::Plain(_) => 2,
            Self::Scaled(_) => 4,
            Self::Added => 5,
        }
    }
}
