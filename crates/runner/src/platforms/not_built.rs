//! A platform that this build lacks: it has no devices.

use super::platform::Platform;
use crate::devices::DiscoveredDevice;
use calorimeter_case::Implementation;
use calorimeter_zoo::DeviceKind;

/// A platform that this build lacks.
#[derive(Debug)]
pub struct NotBuilt {
    kinds: &'static [DeviceKind],
    advice: &'static str,
}

/// NVIDIA's GPUs.
#[cfg(not(feature = "cuda"))]
pub const CUDA: NotBuilt =
    NotBuilt { kinds: &[DeviceKind::Cuda], advice: "\nThis build has no CUDA; build with `--features cuda`.\n" };

/// The adapters of Vulkan or Metal.
#[cfg(not(feature = "wgpu"))]
pub const GRAPHICS: NotBuilt = NotBuilt { kinds: &[DeviceKind::Vulkan, DeviceKind::Metal], advice: "" };

impl NotBuilt {
    /// That of a kind which somebody registered without a platform.
    pub const NOBODYS: Self = Self { kinds: &[], advice: "" };
}

impl Platform for NotBuilt {
    fn kinds(&self) -> &'static [DeviceKind] {
        self.kinds
    }

    fn find(&self) -> Vec<DiscoveredDevice> {
        Vec::new()
    }

    fn advice(&self, _: bool) -> String {
        self.advice.into()
    }

    // What it would have is not known here.
    fn has_graphs(&self, _: Implementation) -> bool {
        true
    }
}
