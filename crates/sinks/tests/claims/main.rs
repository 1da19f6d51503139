//! Guarantees of this crate.

mod golden;
mod journal;
mod json;
mod samples;
mod sinks;
mod stored;
mod tables;
