//! What the clocks claim, tried from outside.
//!
//! What needs a GPU runs with `CALORIMETER_TEST_DEVICE=cuda`; `--nocapture` shows the figures.

#[cfg(feature = "cuda")]
#[path = "claims/cuda.rs"]
mod cuda;
#[cfg(feature = "cuda")]
#[path = "claims/spin.rs"]
mod spin;
