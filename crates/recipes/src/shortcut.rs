//! What a layer's products may be coarser in than their numbers are.

/// What a kernel of products may do more coarsely than the numbers it is given ask for, and is then judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shortcut {
    /// Products of float8 codes may be added up in the registers of tensor cores, which on Hopper keep about 14 bits.
    FastSums,
    /// Factors in f32 may be cut to TF32, 10 bits behind the leading one, which tensor cores multiply.
    Tf32,
}
