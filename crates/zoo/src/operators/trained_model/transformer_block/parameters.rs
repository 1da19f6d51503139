//! Parameter indices of `transformer_block`.

pub const QKV: usize = 0;
pub const PROJECT: usize = 1;
pub const UP: usize = 2;
pub const DOWN: usize = 3;
/// Gain of the normalization before attention.
pub const ATTENTION_GAIN: usize = 4;
/// Gain of the normalization before the MLP.
pub const MLP_GAIN: usize = 5;
