//! Prologue and epilogue of a linear layer.

use crate::Activation;
use calorimeter_kernels::Prologue;

/// Prologue and epilogue of a linear layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerForm {
    /// Operation on the input.
    pub prologue: Prologue,
    /// Activation after the GEMM.
    pub activation: Option<Activation>,
    /// True if a residual of the size of the output is added at the end.
    pub added: bool,
}

impl LayerForm {
    /// GEMM without prologue and epilogue.
    pub const GEMM_ONLY: Self = Self { prologue: Prologue::None, activation: None, added: false };
}
