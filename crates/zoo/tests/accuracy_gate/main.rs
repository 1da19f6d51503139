//! Accuracy of every implementation against the references, on all devices of this machine, and sensitivity of the
//! gate.

mod gemm_suite;
mod host_models;
mod kernel_bugs;
mod layer_mutants;
mod models;
mod operator_mutants;
mod operators;
mod registration;
mod set_rotation;
mod trained_models;
mod training;
mod wrong_scales;
