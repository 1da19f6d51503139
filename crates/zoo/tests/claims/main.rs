//! Accuracy of every implementation against the references, on all devices of this machine, and sensitivity of the
//! gate.

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
