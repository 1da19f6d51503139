//! Dialects of accelerator-microbenchmarks. Version 1: a list `benchmarks` of operators with parameters and sweeps.
//! Version 2: see [`v2`].

mod conversion;
mod file;
mod fusion_counts;
mod notes;
mod published;
mod read;
mod schema;
mod sweep;
mod unsupported;
mod v2;

pub use published::{default_element, published_counts};
pub(super) use read::{is_accelerator_file, read};
pub(super) use schema::schema;
pub(crate) use unsupported::register as name_ours;
