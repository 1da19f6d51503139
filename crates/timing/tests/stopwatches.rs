//! Tests of the clocks through the public API.
//!
//! GPU tests run with `CALORIMETER_TEST_DEVICE=cuda`; `--nocapture` prints the measurements.

#[cfg(feature = "cuda")]
#[path = "stopwatches/cuda.rs"]
mod cuda;
#[cfg(feature = "cuda")]
#[path = "stopwatches/spin.rs"]
mod spin;
