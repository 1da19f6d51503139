//! Scalar arithmetic shared by host and device: the functions run on the host and, through CubeCL, in kernels.
//!
//! For bit-exact results on all devices they use only integer operations, comparisons, and single additions,
//! multiplications and divisions. GPU compilers may contract a multiplication and an addition into a fused
//! multiply-add, which rounds once; [`rounding::prevent_fma()`] prevents that.

pub mod minifloat;
pub mod rounding;
