//! Devices of a machine, real or simulated, and device selection.

use super::discovered::DiscoveredDevice;
use crate::captured_stderr::with_stderr_prefix;
use crate::entries::DeviceSelection;
use crate::platforms::{self, Platform};
use calorimeter_case::{Device, DeviceKind};
use std::sync::OnceLock;

/// Devices of a machine. Each platform is queried once, on first use.
#[derive(Debug)]
pub struct Devices(Vec<PlatformDevices>);

/// Platform with its devices, queried on first use.
#[derive(Debug)]
struct PlatformDevices {
    platform: &'static dyn Platform,
    devices: OnceLock<Vec<DiscoveredDevice>>,
}

impl PlatformDevices {
    fn devices(&self) -> &[DiscoveredDevice] {
        // Labels messages that a driver prints while it loads.
        let kind = self.platform.kinds().first().map_or_else(String::new, |kind| kind.name().to_string());
        self.devices.get_or_init(|| with_stderr_prefix(&kind, || self.platform.find()))
    }
}

/// Error of device selection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The device does not exist.
    #[error("device {wanted} not found; available: {found}. Select one with --device, or see `calorimeter doctor`")]
    Missing {
        /// Requested device.
        wanted: String,
        /// Devices that exist.
        found: String,
    },
    /// All devices of a kind were requested where one is expected.
    #[error("{kind}:all selects several devices, but one is expected, e.g. {kind}:0")]
    SeveralDevices {
        /// Device kind.
        kind: DeviceKind,
    },
    /// The devices of a kind differ, so that their times cannot be mixed.
    #[error("{kind}:all: the devices differ, so their times cannot be mixed: {found}. Select one of them")]
    DifferentDevices {
        /// Device kind.
        kind: DeviceKind,
        /// Devices that exist.
        found: String,
    },
}

/// Devices of this machine.
pub fn this_machine() -> &'static Devices {
    static HERE: OnceLock<Devices> = OnceLock::new();
    platforms::register_kinds();
    HERE.get_or_init(|| Devices::new(|_| OnceLock::new()))
}

/// Finds a device of this machine.
pub fn find_device(device: Device) -> Result<DiscoveredDevice, DeviceError> {
    this_machine().find(device)
}

impl Devices {
    /// Creates the table of platforms with their devices, known or to be queried.
    fn new(found: impl Fn(&'static dyn Platform) -> OnceLock<Vec<DiscoveredDevice>>) -> Self {
        let asked = |platform| PlatformDevices { platform, devices: found(platform) };
        Self(platforms::all().into_iter().map(asked).collect())
    }

    /// Simulates a machine with the given devices and a processor.
    ///
    /// ```
    /// use calorimeter_runner::devices::{Devices, DiscoveredDevice};
    /// use calorimeter_runner::entries::DeviceSelection;
    /// use calorimeter_zoo::Device;
    ///
    /// let two = [0, 1].map(|index| DiscoveredDevice::with_name(Device::Cuda(index), "a GPU"));
    /// let machine = Devices::simulated(two);
    /// assert_eq!(machine.choose(DeviceSelection::Auto), Ok(Device::Cuda(0)));
    /// assert!(machine.find(Device::Cuda(2)).is_err());
    /// assert_eq!(Devices::simulated([]).choose(DeviceSelection::Auto), Ok(Device::Cpu));
    /// ```
    pub fn simulated(devices: impl IntoIterator<Item = DiscoveredDevice>) -> Self {
        let mut devices: Vec<DiscoveredDevice> = devices.into_iter().collect();
        if devices.iter().all(|one| one.device != Device::Cpu) {
            devices.push(DiscoveredDevice::with_name(Device::Cpu, "a processor"));
        }
        Self::new(|platform| {
            let its = |one: &&DiscoveredDevice| platform.kinds().contains(&one.device.kind());
            let found: Vec<DiscoveredDevice> = devices.iter().filter(its).cloned().collect();
            if platform.is_simulated() && found.is_empty() { OnceLock::new() } else { OnceLock::from(found) }
        })
    }

    /// All devices in order of preference, without simulated devices.
    pub fn all(&self) -> impl Iterator<Item = &DiscoveredDevice> {
        self.0.iter().filter(|asked| !asked.platform.is_simulated()).flat_map(PlatformDevices::devices)
    }

    /// Selects the device for a setting of the configuration. An explicit device is returned unchecked; see
    /// [`Devices::find`].
    pub fn choose(&self, wanted: DeviceSelection) -> Result<Device, DeviceError> {
        let first = |suits: fn(&DiscoveredDevice) -> bool| self.all().find(|one| suits(one)).map(|one| one.device);
        match wanted {
            DeviceSelection::Single(device) => Ok(device),
            DeviceSelection::Auto => Ok(first(|one| !one.software).unwrap_or(Device::Cpu)),
            DeviceSelection::Xpu => first(|one| one.intel).ok_or_else(|| self.missing_device(wanted)),
            DeviceSelection::All(kind) => Err(DeviceError::SeveralDevices { kind }),
        }
    }

    /// Selects the devices that share the work: one, or all of a kind, which must be equivalent. Emulated devices count
    /// only if there are no real ones.
    pub fn choose_all(&self, wanted: DeviceSelection) -> Result<Vec<Device>, DeviceError> {
        let DeviceSelection::All(kind) = wanted else { return Ok(vec![self.choose(wanted)?]) };
        let of_kind = || self.of_kind(kind).iter().filter(|one| one.device.kind() == kind);
        let is_real = of_kind().any(|one| !one.software);
        let all: Vec<&DiscoveredDevice> = of_kind().filter(|one| one.software != is_real).collect();
        let first = *all.first().ok_or_else(|| self.missing_device(wanted))?;
        if !all.iter().all(|one| one.is_equivalent(first)) {
            let names: Vec<String> =
                all.iter().map(|one| format!("{} ({})", one.device, one.name_and_driver())).collect();
            return Err(DeviceError::DifferentDevices { kind, found: names.join(", ") });
        }
        Ok(all.into_iter().map(|one| one.device).collect())
    }

    /// Finds a device; the error lists the existing ones.
    pub fn find(&self, device: Device) -> Result<DiscoveredDevice, DeviceError> {
        let found = self.of_kind(device.kind()).iter().find(|one| one.device == device);
        found.cloned().ok_or_else(|| self.missing_device(device))
    }

    /// Number of CUDA devices; loads no other driver.
    pub fn cuda_count(&self) -> u64 {
        self.of_kind(DeviceKind::Cuda).len() as u64
    }

    /// Devices of the platform of a kind.
    fn of_kind(&self, kind: DeviceKind) -> &[DiscoveredDevice] {
        let drives = |asked: &&PlatformDevices| asked.platform.kinds().contains(&kind);
        self.0.iter().find(drives).map_or(&[], PlatformDevices::devices)
    }

    fn missing_device(&self, wanted: impl ToString) -> DeviceError {
        let names: Vec<String> = self.all().map(|one| format!("{} ({})", one.device, one.name)).collect();
        DeviceError::Missing { wanted: wanted.to_string(), found: names.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(names: &[&str]) -> Devices {
        let gpu = |(index, name): (usize, &&str)| DiscoveredDevice {
            software: name.starts_with("llvmpipe"),
            ..DiscoveredDevice::with_name(Device::Vulkan(index as u16), *name)
        };
        Devices::simulated(names.iter().enumerate().map(gpu))
    }

    #[test]
    fn equivalent_devices_share_the_work() {
        let all = |names: &[&str]| {
            let sharing = machine(names).choose_all(DeviceSelection::All(DeviceKind::Vulkan));
            sharing.map(|all| all.len()).map_err(|error| error.to_string())
        };
        assert_eq!(all(&["A", "A", "A"]), Ok(3));
        assert_eq!(all(&["A", "A", "llvmpipe"]), Ok(2));
        assert_eq!(all(&["llvmpipe"]), Ok(1));
        let missing = all(&[]).unwrap_err();
        assert!(missing.starts_with("device vulkan:all not found; available: cpu"), "{missing}");
        let unlike = all(&["A", "B"]).unwrap_err();
        assert!(unlike.ends_with("cannot be mixed: vulkan:0 (A), vulkan:1 (B). Select one of them"), "{unlike}");
    }

    #[test]
    fn single_device_commands_reject_all() {
        let error = machine(&["A", "A"]).choose(DeviceSelection::All(DeviceKind::Vulkan)).unwrap_err().to_string();
        assert_eq!(error, "vulkan:all selects several devices, but one is expected, e.g. vulkan:0");
    }
}
