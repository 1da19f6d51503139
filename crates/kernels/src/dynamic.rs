//! Layers whose input is turned into codes as it comes.

use crate::{Activation, Dtype};

/// What inputs and weights are stored as. An input's scale is found so that its largest magnitude has the largest code, in
/// steps that are each rounded to the input's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DynamicCodes {
    /// Integers of a byte, an input's from -127 to 127; sums are exact. A weight's scales are of the layer's type.
    Int8,
    /// e4m3, without NaN. A weight's scales are f32.
    E4m3,
    /// A weight's of 4 bits around zero under inputs of a byte, from -128 to 127, found in f32. Scales are f32.
    Int4,
    /// The same with inputs from -127 to 127, and the weight's codes in groups of [`DynamicCodes::GROUP`]: times the scale of its
    /// group, of the layer's type, a code is rounded to an integer of a byte, of which the scales of rows are.
    Int4InGroups,
}

impl DynamicCodes {
    /// The longest rows whose sums 32 bits are sure to hold, where sums are integers of 127 times -128 at most.
    pub const MOST_INT8: usize = i32::MAX as usize / (127 * 128);

    /// Codes of a weight that share a scale, where those of a row are in groups.
    pub const GROUP: usize = 128;

    /// The longest rows whose sums are sure to be exact, where they are integers.
    pub const fn longest_row(self) -> Option<usize> {
        match self {
            Self::Int8 | Self::Int4InGroups => Some(Self::MOST_INT8),
            // A product is sixteen times too large on its way.
            Self::Int4 => Some(i32::MAX as usize / (128 * 128)),
            Self::E4m3 => None,
        }
    }

    /// Whether a weight's codes are half a byte.
    pub const fn are_halves(self) -> bool {
        matches!(self, Self::Int4 | Self::Int4InGroups)
    }

    /// The name that kernels have by it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::E4m3 => "e4m3",
            Self::Int4 => "int4",
            Self::Int4InGroups => "int4_groups",
        }
    }
}

/// Which numbers of an input, and of a weight, share a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SharedScale {
    /// Those of a row.
    Row,
    /// All.
    Tensor,
}

/// How products of float8 codes are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Float8Sums {
    /// In the registers of the tensor cores, which on Hopper keep about 14 bits: what XLA asks for, and the fastest.
    Fast,
    /// Moved to f32 every few steps.
    Promoted,
}

/// What an input goes through before it is multiplied, rounded to its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Prologue {
    /// Nothing.
    Nothing,
    /// Each row a layer normalization without weights.
    LayerNorm,
    /// Each row a division by its root mean square.
    RmsNorm,
    /// Each number an activation.
    Activation(Activation),
    /// Attention among the 16 tokens of each sequence. Rows of x are q, k and v of a token side by side, each head by head.
    ShortAttention {
        /// Heads of a token.
        heads: usize,
    },
}

/// A layer y = f(p(x) · wᵀ) + added, in which p(x) and w are multiplied as codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DynamicForm {
    /// The type of x and y.
    pub kind: Dtype,
    /// What x and w are stored as.
    pub codes: DynamicCodes,
    /// Which of their numbers share a scale.
    pub shared: SharedScale,
    /// How products of e4m3 are added up; those of integers are exact.
    pub sums: Float8Sums,
    /// What x goes through first.
    pub prologue: Prologue,
    /// What follows the product.
    pub activation: Option<Activation>,
    /// Whether a matrix like y is added at the end.
    pub added: bool,
}
