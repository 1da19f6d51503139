#![doc = include_str!("../README.md")]

// Lets files move between this crate and other crates without changing their paths.
extern crate self as calorimeter_runner;

pub mod cli;
pub mod devices;
pub mod dialects;
pub mod entries;
pub mod environment;
#[doc(hidden)]
pub mod fuzz_api;
mod fuzzy_name;
mod merge;
pub mod mock;
pub mod plan;
pub mod platforms;
pub mod run;
pub mod worker;

mod cache;
mod calibration;
mod captured_stderr;
mod clock_lock;
mod clock_notes;
mod compare;
mod exit;
mod expression;
mod fingerprint;
mod host;
mod log_line;
mod noise;
mod noise_floor;
mod path_serde;
mod peaks;
mod print;
mod program;
mod progress;
mod regimes;
mod rough_time;
mod selftest;
mod suite_speedups;

// Crates whose types appear in public signatures.
pub use ::{chrono, regex, serde_json};
pub use exit::Exit;
pub use program::Calorimeter;
