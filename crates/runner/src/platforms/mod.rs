//! What drives devices: a file for each platform, and its line in [`OURS`].

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "wgpu")]
mod graphics;
pub mod memory;
mod mock;
mod not_built;
mod others;
mod platform;
mod trials;

pub use platform::{Choice, Platform};
pub use trials::Trials;

use calorimeter_case::Device;
use not_built::NotBuilt;

// ANCHOR: table
/// Every platform of ours, the best first.
const OURS: &[&dyn Platform] = &[
    #[cfg(feature = "cuda")]
    &cuda::Cuda,
    #[cfg(not(feature = "cuda"))]
    &not_built::CUDA,
    #[cfg(feature = "wgpu")]
    &graphics::Graphics,
    #[cfg(not(feature = "wgpu"))]
    &not_built::GRAPHICS,
    &cpu::Cpu,
    &mock::Mock,
];
// ANCHOR_END: table

/// Every platform, the best first.
pub(crate) fn all() -> Vec<&'static dyn Platform> {
    OURS.to_vec()
}

/// What drives a device.
pub(crate) fn of(device: Device) -> &'static dyn Platform {
    let drives = |platform: &&dyn Platform| platform.kinds().contains(&device.kind());
    all().into_iter().find(drives).unwrap_or(&NotBuilt::NOBODYS)
}
