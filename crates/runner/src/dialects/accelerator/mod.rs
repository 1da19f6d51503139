//! Dialect of accelerator-microbenchmarks version 1: a list `benchmarks` of operators with parameters and sweeps.

mod file;
mod fusion_counts;
mod notes;
mod published;
mod read;
mod schema;
mod splash_attention;
mod sweep;

pub use published::{default_element, published_counts};
pub(super) use read::{is_accelerator_file, read};
pub(super) use schema::schema;
pub(crate) use splash_attention::register as name_ours;
