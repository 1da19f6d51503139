#![doc = include_str!("../README.md")]

// Lets code moved between this crate and another refer to `calorimeter_probe` in both.
extern crate self as calorimeter_probe;

pub mod calibration;
mod captured_stderr;
pub mod clock_lock;
pub mod clock_notes;
pub mod devices;
pub mod host;
pub mod noise_floor;
pub mod peaks;
pub mod platforms;
pub mod regimes;
pub mod selftest;
pub mod sensors;
mod timed_workload;

pub use captured_stderr::with_stderr_prefix;
pub use timed_workload::TimedWorkload;
