//! Guarantees of this crate.

mod golden_files;
mod journal;
mod record_json;
mod samples;
mod series_on_disk;
mod sinks;
mod tables;
