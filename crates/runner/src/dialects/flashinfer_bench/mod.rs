//! Data sets of flashinfer-bench: each workload becomes an entry of external programs, with the reference of its
//! definition as the first program and the solutions as the others.

mod dataset;
mod safetensors;
mod schema;
mod work;

pub(crate) use dataset::{DatasetOptions, entries};
