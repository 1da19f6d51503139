//! What a layer does besides its product.

use crate::Activation;
use calorimeter_kernels::Prologue;

/// What is before and after a product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerForm {
    /// What the input goes through first.
    pub prologue: Prologue,
    /// What follows the product.
    pub activation: Option<Activation>,
    /// Whether a matrix like the output is added at the end.
    pub added: bool,
}

impl LayerForm {
    /// A product alone.
    pub const PRODUCT: Self = Self { prologue: Prologue::Nothing, activation: None, added: false };
}
