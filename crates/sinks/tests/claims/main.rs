//! What this crate promises.

mod golden;
mod journal;
mod json;
mod samples;
mod sinks;
mod stored;
mod tables;
