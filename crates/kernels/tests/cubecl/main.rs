//! CubeCL kernels and probes against references.
//!
//! Runs on Vulkan, for which a software adapter suffices (CI installs one), and on the first NVIDIA GPU with
//! `cargo test --features full -- --include-ignored`. `-- --nocapture` shows which devices were used.
#![cfg(feature = "cube")]

mod devices;
mod kernels;
mod layers;
mod matrices;
mod probes;
mod references;
