//! Parameter indices of `swiglu_mlp`.

pub const GATE: usize = 0;
pub const UP: usize = 1;
pub const DOWN: usize = 2;
