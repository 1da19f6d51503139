//! What the zoo computes is what its references say, on every device that is here.

mod additions;
mod gemm_suite;
mod host_models;
mod kernel_bugs;
mod models;
mod moves;
mod mutants;
mod operator_mutants;
mod operators;
mod tampered;
mod trained_models;
mod training;
