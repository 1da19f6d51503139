#![doc = include_str!("../README.md")]

// Lets files move between this crate and other crates without changing their paths.
extern crate self as calorimeter_runner;

pub mod cli;
pub mod dialects;
pub mod entries;
pub mod environment;
#[doc(hidden)]
pub mod fuzz_api;
mod merge;
pub mod mock;
pub mod plan;
pub mod run;
pub mod worker;

mod calibration;
mod exit;
mod expression;
mod fingerprint;
mod noise;
mod path_serde;
mod print;
mod program;
mod progress;
mod rough_time;
mod suite_speedups;

// Crates whose types appear in public signatures.
pub use ::{chrono, regex, serde_json};
pub use exit::Exit;
pub use program::Calorimeter;
