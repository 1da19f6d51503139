//! Tensors of a model.

use crate::Matrix;
use calorimeter_recipes::Weight;

/// Input and weights of a problem on the host. All arms of a comparison receive identical bits.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensors {
    /// Standard normal values.
    pub input: Matrix,
    /// Weights of the linear layers, uniform within plus and minus 1 / sqrt(k).
    pub weights: Vec<Weight>,
}
