//! Platforms, one file each; registered in `OURS`.

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
mod probed;
mod trials;

pub use crate::peaks::ProductKind;
pub use platform::{Choice, Platform};
pub use probed::Probed;
pub use trials::Trials;

use calorimeter_case::{Device, NameTaken, Registry};
use calorimeter_zoo::DeviceKind;
use not_built::NotBuilt;
use std::sync::Once;

// ANCHOR: table
/// Built-in platforms in order of preference.
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

/// Platforms registered by other crates.
static OTHERS: Registry<dyn Platform> = Registry::new("platform");

/// Registers the device kinds of built-in platforms that are not variants of the enum.
pub(crate) fn name_ours() {
    static NAMED: Once = Once::new();
    NAMED.call_once(|| {
        for kind in OURS.iter().flat_map(|platform| platform.kinds()) {
            if let DeviceKind::Other(name) = kind {
                // The names are constants; a duplicate would fail at the first start of the program.
                DeviceKind::register(*name).expect("built-in device kinds are unique");
            }
        }
    });
}

/// Registers a platform and its device kinds, whose names must be new. To be called before devices are parsed or
/// discovered.
pub fn register(platform: &'static dyn Platform) -> Result<(), NameTaken> {
    name_ours();
    for kind in platform.kinds() {
        DeviceKind::register(kind.name())?;
    }
    platform.kinds().first().map_or(Ok(()), |first| OTHERS.add(first.name(), platform))
}

/// All platforms in order of preference; registered ones come first.
pub(crate) fn all() -> Vec<&'static dyn Platform> {
    let mut all = OTHERS.all();
    all.extend(OURS);
    all
}

/// Platform of a device.
pub fn of(device: Device) -> &'static dyn Platform {
    let drives = |platform: &&dyn Platform| platform.kinds().contains(&device.kind());
    // Called for each case of a plan: built-in platforms are searched without allocating a list.
    let built_in = OURS.iter().copied().find(drives);
    built_in.or_else(|| OTHERS.all().into_iter().find(drives)).unwrap_or(&NotBuilt::NOBODYS)
}
