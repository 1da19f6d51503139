//! Devices of a machine, real or simulated.

use super::discovered::DiscoveredDevice;
use crate::captured_stderr::capture_stderr;
use crate::platforms::{self, Platform};
use calorimeter_case::{Device, DeviceKind, excerpt};
use calorimeter_zoo::backends::{MissingFeature, missing_features};
use std::sync::OnceLock;

/// Devices of a machine. Each platform is queried once, on first use.
#[derive(Debug)]
pub struct Devices(Vec<PlatformDevices>);

/// Platform with its devices, queried on first use.
#[derive(Debug)]
struct PlatformDevices {
    platform: &'static dyn Platform,
    discovery: OnceLock<Discovery>,
}

/// Result of a discovery.
#[derive(Debug)]
struct Discovery {
    devices: Vec<DiscoveredDevice>,
    /// Lines that the driver printed to standard error; consecutive repetitions are removed.
    driver_messages: Vec<String>,
}

impl PlatformDevices {
    fn discovery(&self) -> &Discovery {
        // Driver messages are not printed, because the command may use another platform. `doctor` and the error for a
        // missing device show them.
        self.discovery.get_or_init(|| {
            if self.platform.is_simulated() {
                return Discovery { devices: self.platform.find(), driver_messages: Vec::new() };
            }
            let (devices, mut driver_messages) = capture_stderr(|| self.platform.find());
            driver_messages.dedup();
            Discovery { devices, driver_messages }
        })
    }
}

/// Error for a device that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("device {wanted} not found; available: {found}. {}{}", self.remedy(), self.driver_report())]
pub struct MissingDevice {
    /// Requested device.
    pub wanted: String,
    /// Devices that exist.
    pub found: String,
    /// Feature without which this build finds no device of the kind.
    pub feature: Option<MissingFeature>,
    /// Messages of the driver during discovery.
    pub driver_messages: Box<[String]>,
}

/// Length of both ends of long driver messages in an error.
const EXCERPT_LENGTH: usize = 150;

impl MissingDevice {
    fn driver_report(&self) -> String {
        let report = excerpt(&self.driver_messages.join("; "), EXCERPT_LENGTH);
        if report.is_empty() { report } else { format!("; the driver reports: {report}") }
    }

    fn remedy(&self) -> String {
        let select = || "Select one with --device, or see `calorimeter doctor`".into();
        self.feature.as_ref().map_or_else(select, MissingFeature::to_string)
    }
}

/// Devices of this machine.
pub fn this_machine() -> &'static Devices {
    static HERE: OnceLock<Devices> = OnceLock::new();
    platforms::register_kinds();
    HERE.get_or_init(|| Devices::new(|_| OnceLock::new()))
}

/// Finds a device of this machine.
pub fn find_device(device: Device) -> Result<DiscoveredDevice, MissingDevice> {
    this_machine().find(device)
}

impl Devices {
    /// Creates the table of platforms with their devices, known or to be queried.
    fn new(discovery: impl Fn(&'static dyn Platform) -> OnceLock<Discovery>) -> Self {
        let asked = |platform| PlatformDevices { platform, discovery: discovery(platform) };
        Self(platforms::all().into_iter().map(asked).collect())
    }

    /// Simulates a machine with the given devices and a processor.
    ///
    /// ```
    /// use calorimeter_probe::devices::{Devices, DiscoveredDevice};
    /// use calorimeter_zoo::Device;
    ///
    /// let two = [0, 1].map(|index| DiscoveredDevice::with_name(Device::Cuda(index), "a GPU"));
    /// let machine = Devices::simulated(two);
    /// assert!(machine.find(Device::Cuda(1)).is_ok());
    /// assert!(machine.find(Device::Cuda(2)).is_err());
    /// assert_eq!(Devices::simulated([]).all().count(), 1);
    /// ```
    pub fn simulated(devices: impl IntoIterator<Item = DiscoveredDevice>) -> Self {
        let mut devices: Vec<DiscoveredDevice> = devices.into_iter().collect();
        if devices.iter().all(|one| one.device != Device::Cpu) {
            devices.push(DiscoveredDevice::with_name(Device::Cpu, "a processor"));
        }
        Self::new(|platform| {
            let its = |one: &&DiscoveredDevice| platform.kinds().contains(&one.device.kind());
            let found: Vec<DiscoveredDevice> = devices.iter().filter(its).cloned().collect();
            if platform.is_simulated() && found.is_empty() {
                return OnceLock::new();
            }
            OnceLock::from(Discovery { devices: found, driver_messages: Vec::new() })
        })
    }

    /// All devices in order of preference, without simulated devices.
    pub fn all(&self) -> impl Iterator<Item = &DiscoveredDevice> {
        self.0.iter().filter(|asked| !asked.platform.is_simulated()).flat_map(|asked| &asked.discovery().devices)
    }

    /// Finds a device; the error lists the existing ones.
    pub fn find(&self, device: Device) -> Result<DiscoveredDevice, MissingDevice> {
        let found = self.of_platform(device.kind()).iter().find(|one| one.device == device);
        found.cloned().ok_or_else(|| self.missing_device(device, device.kind()))
    }

    /// Number of CUDA devices; loads no other driver.
    pub fn cuda_count(&self) -> u64 {
        self.of_platform(DeviceKind::Cuda).len() as u64
    }

    /// Devices of the platform of a kind; they may include other kinds.
    pub fn of_platform(&self, kind: DeviceKind) -> &[DiscoveredDevice] {
        self.discovery(kind).map_or(&[], |discovery| &discovery.devices)
    }

    /// Lines that the driver of a kind printed to standard error during discovery.
    pub fn driver_messages(&self, kind: DeviceKind) -> &[String] {
        self.discovery(kind).map_or(&[], |discovery| &discovery.driver_messages)
    }

    fn discovery(&self, kind: DeviceKind) -> Option<&Discovery> {
        let drives = |asked: &&PlatformDevices| asked.platform.kinds().contains(&kind);
        self.0.iter().find(drives).map(PlatformDevices::discovery)
    }

    /// Error for a device that does not exist; lists the existing ones.
    pub fn missing_device(&self, wanted: impl ToString, kind: DeviceKind) -> MissingDevice {
        let names: Vec<String> = self.all().map(|one| format!("{} ({})", one.device, one.name)).collect();
        let mut missing = missing_features().into_iter();
        let feature = missing.find(|missing| !missing.has_native && missing.kinds.contains(&kind));
        MissingDevice {
            wanted: wanted.to_string(),
            found: names.join(", "),
            feature,
            driver_messages: self.driver_messages(kind).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_devices_carry_driver_messages() {
        let machine = Devices::new(|platform| {
            let fails = platform.kinds().contains(&DeviceKind::Vulkan);
            let driver_messages = if fails { vec!["ERROR: no ICD".into(), "second line".into()] } else { Vec::new() };
            OnceLock::from(Discovery { devices: Vec::new(), driver_messages })
        });
        let missing = machine.find(Device::Vulkan(0)).unwrap_err();
        assert_eq!(*missing.driver_messages, ["ERROR: no ICD", "second line"]);
        assert!(missing.to_string().contains("ERROR: no ICD; second line"), "{missing}");
        assert!(machine.find(Device::Cuda(0)).unwrap_err().driver_messages.is_empty());
    }
}
