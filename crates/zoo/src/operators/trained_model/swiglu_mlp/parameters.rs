//! Parameter indices of `swiglu_mlp`.

pub(super) const GATE: usize = 0;
pub(super) const UP: usize = 1;
pub(super) const DOWN: usize = 2;
