//! Dialect of accelerator-microbenchmarks version 2: `global` defaults, `hardware` peaks, and `benchmarks` with a
//! `sweep`, `csv_shapes` or a `model`.

mod benchmarks;
mod file;
mod parameters;
mod presets;
mod read;
mod rows;
mod schema;

pub(super) use read::{is_version_2, read};
pub(super) use schema::schema;
