//! What the zoo computes is what its references say, on every device that is here.

mod gemm_suite;
mod models;
mod operators;
