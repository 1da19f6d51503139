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
}

impl DynamicCodes {
    /// The longest rows whose sums 32 bits are sure to hold, where sums are integers: products are 127 times -128 at most.
    pub const MOST_INT8: usize = i32::MAX as usize / (127 * 128);

    /// The name that kernels have by it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::E4m3 => "e4m3",
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
    /// Each row a layer normalisation without weights.
    LayerNorm,
    /// Each row a division by its root mean square.
    RmsNorm,
    /// Each number an activation.
    Activation(Activation),
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
