//! Tests of the clocks through the public API.
//!
//! GPU tests are ignored by default; `cargo test -- --include-ignored` runs them. `--nocapture` prints the measurements.

#[cfg(feature = "cuda")]
#[path = "stopwatches/cuda.rs"]
mod cuda;
#[cfg(feature = "cuda")]
#[path = "stopwatches/spin.rs"]
mod spin;
