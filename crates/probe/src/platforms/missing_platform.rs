//! Platform that is not part of this build.

use super::{GraphCapture, Platform, StopwatchChoice};
use crate::devices::DiscoveredDevice;
use calorimeter_case::Implementation;
use calorimeter_timing::Failure;
use calorimeter_zoo::{DeviceKind, NativeDevices, Setup};

/// Platform without devices, because it is not part of this build.
#[derive(Debug)]
pub(super) struct MissingPlatform {
    kinds: &'static [DeviceKind],
}

/// CUDA platform.
#[cfg(not(feature = "native"))]
pub(super) const CUDA: MissingPlatform = MissingPlatform { kinds: &[DeviceKind::Cuda] };

/// Vulkan and Metal platform.
#[cfg(not(feature = "wgpu"))]
pub(super) const GRAPHICS: MissingPlatform = MissingPlatform { kinds: &[DeviceKind::Vulkan, DeviceKind::Metal] };

impl MissingPlatform {
    /// Platform of a device kind that was registered without one.
    pub(super) const UNREGISTERED: Self = Self { kinds: &[] };
}

impl Platform for MissingPlatform {
    fn kinds(&self) -> &'static [DeviceKind] {
        self.kinds
    }

    fn find(&self) -> Vec<DiscoveredDevice> {
        Vec::new()
    }

    fn graphs(&self) -> Option<&dyn GraphCapture> {
        Some(self)
    }
}

impl GraphCapture for MissingPlatform {
    // Unknown in this build, so that plans are not rejected for this reason.
    fn can_capture(&self, _: Implementation) -> bool {
        true
    }

    fn stopwatch(&self, _: Setup, _: &mut NativeDevices) -> Result<StopwatchChoice, Failure> {
        Err("the platform is not part of this build".into())
    }
}
