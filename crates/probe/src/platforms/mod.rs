//! Platforms, one file each; registered in `BUILT_IN`.

mod advice;
mod capabilities;
mod cpu;
#[cfg(feature = "native")]
mod cuda;
mod device_defaults;
#[cfg(feature = "wgpu")]
mod graphics;
pub mod memory;
mod missing_platform;
mod mock;
mod other_users;
mod platform;
mod probe_work;

pub use crate::peaks::MatmulPrecision;
pub use advice::Advice;
pub use capabilities::{DeviceMemory, GraphCapture, Probing, Sensing, StopwatchChoice};
pub use device_defaults::DeviceDefaults;
pub use platform::Platform;
pub use probe_work::ProbeWork;

use calorimeter_case::{Device, NameTaken, Registry};
use calorimeter_zoo::DeviceKind;
use missing_platform::MissingPlatform;
use std::sync::Once;

// ANCHOR: table
/// Built-in platforms in order of preference.
const BUILT_IN: &[&dyn Platform] = &[
    #[cfg(feature = "native")]
    &cuda::Cuda,
    #[cfg(not(feature = "native"))]
    &missing_platform::CUDA,
    #[cfg(feature = "wgpu")]
    &graphics::Graphics,
    #[cfg(not(feature = "wgpu"))]
    &missing_platform::GRAPHICS,
    &cpu::Cpu,
    &mock::Mock,
];
// ANCHOR_END: table

/// Platforms registered by other crates.
static REGISTERED: Registry<dyn Platform> = Registry::new("platform");

/// Registers the device kinds of built-in platforms that are not variants of the enum.
pub fn register_kinds() {
    static NAMED: Once = Once::new();
    NAMED.call_once(|| {
        for kind in BUILT_IN.iter().flat_map(|platform| platform.kinds()) {
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
    register_kinds();
    for kind in platform.kinds() {
        DeviceKind::register(kind.name())?;
    }
    platform.kinds().first().map_or(Ok(()), |first| REGISTERED.add(first.name(), platform))
}

/// All platforms in order of preference; registered ones come first.
pub fn all() -> Vec<&'static dyn Platform> {
    let mut all = REGISTERED.all();
    all.extend(BUILT_IN);
    all
}

/// Platform of a device.
pub fn for_device(device: Device) -> &'static dyn Platform {
    let drives = |platform: &&dyn Platform| platform.kinds().contains(&device.kind());
    // Called for each case of a plan: built-in platforms are searched without allocating a list.
    let built_in = BUILT_IN.iter().copied().find(drives);
    built_in.or_else(|| REGISTERED.all().into_iter().find(drives)).unwrap_or(&MissingPlatform::UNREGISTERED)
}
