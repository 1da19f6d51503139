//! Reduced precision that the kernels of a layer are allowed to use.

/// Reduced precision that GEMM kernels are allowed to use; the gate adjusts its tolerance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PrecisionHint {
    /// Float8 products may stay in the accumulators of tensor cores, which hold about 14 bits on Hopper.
    FastAccumulation,
    /// f32 operands may be rounded to TF32, which has 10 mantissa bits, for tensor cores.
    Tf32,
}
