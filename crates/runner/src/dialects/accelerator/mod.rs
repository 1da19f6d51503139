//! Dialect of accelerator-microbenchmarks version 1: a list `benchmarks` of operators with parameters and sweeps.

mod file;
mod notes;
mod patterns;
mod published;
mod read;
mod schema;
mod splash_attention;
mod sweep;

pub use published::{default_element, published};
pub use read::{is_one, read};
pub use schema::schema;
pub use splash_attention::name_it as name_ours;
