//! What runs through CubeCL, against what it should compute.
//!
//! On Vulkan, for which a software adapter does; continuous integration installs one. On the first NVIDIA GPU with
//! `CALORIMETER_TEST_DEVICE=cuda`. Use `-- --nocapture` to see which happened.
#![cfg(feature = "cube")]

mod devices;
mod kernels;
mod matrices;
mod probes;
mod references;
