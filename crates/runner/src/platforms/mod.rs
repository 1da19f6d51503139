//! What drives devices: a file for each platform, and its line in `OURS`.

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

/// What other crates have registered.
static OTHERS: Registry<dyn Platform> = Registry::new("platform");

/// Names the kinds of our platforms' devices that the vocabulary does not have by itself.
pub(crate) fn name_ours() {
    static NAMED: Once = Once::new();
    NAMED.call_once(|| {
        for kind in OURS.iter().flat_map(|platform| platform.kinds()) {
            if let DeviceKind::Other(name) = kind {
                // They are constants: the first start of a program would show two that are alike.
                DeviceKind::register(*name).expect("our own names differ");
            }
        }
    });
}

/// Adds a platform, and the kinds of its devices under names that none has yet. It is to be done before devices are named
/// or looked for.
pub fn register(platform: &'static dyn Platform) -> Result<(), NameTaken> {
    name_ours();
    for kind in platform.kinds() {
        DeviceKind::register(kind.name())?;
    }
    platform.kinds().first().map_or(Ok(()), |first| OTHERS.add(first.name(), platform))
}

/// Every platform, the best first; who adds one to the program means it.
pub(crate) fn all() -> Vec<&'static dyn Platform> {
    let mut all = OTHERS.all();
    all.extend(OURS);
    all
}

/// What drives a device.
pub fn of(device: Device) -> &'static dyn Platform {
    let drives = |platform: &&dyn Platform| platform.kinds().contains(&device.kind());
    // Asked for each case of a plan: ours are found without a list being made.
    let ours = OURS.iter().copied().find(drives);
    ours.or_else(|| OTHERS.all().into_iter().find(drives)).unwrap_or(&NotBuilt::NOBODYS)
}
