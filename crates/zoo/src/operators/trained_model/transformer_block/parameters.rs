//! Its parameters by their numbers.

pub const QKV: usize = 0;
pub const PROJECT: usize = 1;
pub const UP: usize = 2;
pub const DOWN: usize = 3;
/// The gain of the norm before attention.
pub const FIRST: usize = 4;
/// That of the norm before the MLP.
pub const SECOND: usize = 5;
