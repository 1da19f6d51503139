//! Arithmetic on single numbers, written once: the same functions run on the host and, through CubeCL, in kernels.
//!
//! To give the same bits everywhere they keep to what every device does alike: integer operations, comparisons, and
//! single additions, multiplications and divisions. Compilers for GPUs may contract a product and the sum that takes it
//! into one rounding; [`rounding::apart()`] keeps them apart.

pub mod hqq;
pub mod minifloat;
pub mod power;
pub mod qqq;
pub mod rounding;
pub mod rules;
