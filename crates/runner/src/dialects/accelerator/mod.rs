//! Files of accelerator-microbenchmarks version 1: a list `benchmarks`, each an operator with parameters and sweeps.

mod elements;
mod file;
mod notes;
mod read;
mod schema;
mod sweep;

pub use elements::default_element;
pub use read::{is_one, read};
pub use schema::schema;
