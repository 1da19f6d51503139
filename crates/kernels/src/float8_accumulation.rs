//! Accumulation mode of float8 matrix multiplication.

/// Accumulation mode of float8 matrix multiplication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Float8Accumulation {
    /// Fast accumulation in the tensor-core registers, which have about 14 bits on Hopper. Fastest; XLA's default.
    Fast,
    /// Partial sums are promoted to f32 registers every few steps.
    Promoted,
}
