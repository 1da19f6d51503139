//! Parameter indices of `transformer_block`.

pub(super) const QKV: usize = 0;
pub(super) const PROJECT: usize = 1;
pub(super) const UP: usize = 2;
pub(super) const DOWN: usize = 3;
/// Gain of the normalization before attention.
pub(super) const ATTENTION_GAIN: usize = 4;
/// Gain of the normalization before the MLP.
pub(super) const MLP_GAIN: usize = 5;
