//! What a model is given.

use crate::Matrix;
use calorimeter_recipes::Weight;

/// A problem's input and weights on the host: every arm of a comparison gets the same bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensors {
    /// Standard normal values.
    pub input: Matrix,
    /// One weight for each linear layer, uniform within plus and minus 1 / sqrt(k).
    pub weights: Vec<Weight>,
}
