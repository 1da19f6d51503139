//! The devices of a machine, this one or an invented one, and what words mean among them.

use super::discovered::DiscoveredDevice;
use super::discovery::{cpu, cuda, graphics};
use crate::entries::Wanted;
use calorimeter_case::Device;
use std::sync::OnceLock;

/// The devices of a machine. Each driver is asked once, and not before its devices matter.
#[derive(Debug, Default)]
pub struct Devices {
    cuda: OnceLock<Vec<DiscoveredDevice>>,
    graphics: OnceLock<Vec<DiscoveredDevice>>,
    cpu: OnceLock<DiscoveredDevice>,
}

/// Why a device cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// It is not there.
    #[error("device {wanted} is not here; found: {found}. Choose one with --device, or see `calorimeter doctor`")]
    Missing {
        /// What was asked for.
        wanted: String,
        /// What is there.
        found: String,
    },
}

/// The devices of this machine.
pub fn here() -> &'static Devices {
    static HERE: OnceLock<Devices> = OnceLock::new();
    HERE.get_or_init(Devices::default)
}

/// A device of this machine.
pub fn present(device: Device) -> Result<DiscoveredDevice, DeviceError> {
    here().present(device)
}

impl Devices {
    /// A machine with these devices and a processor, whatever is here.
    ///
    /// ```
    /// use calorimeter_runner::devices::{Devices, DiscoveredDevice};
    /// use calorimeter_runner::entries::Wanted;
    /// use calorimeter_zoo::Device;
    ///
    /// let two = [0, 1].map(|index| DiscoveredDevice::named(Device::Cuda(index), "a GPU"));
    /// let machine = Devices::invented(two);
    /// assert_eq!(machine.choose(Wanted::Auto), Ok(Device::Cuda(0)));
    /// assert!(machine.present(Device::Cuda(2)).is_err());
    /// assert_eq!(Devices::invented([]).choose(Wanted::Auto), Ok(Device::Cpu));
    /// ```
    pub fn invented(devices: impl IntoIterator<Item = DiscoveredDevice>) -> Self {
        let mut found: Vec<DiscoveredDevice> = devices.into_iter().collect();
        let processor = found.iter().position(|one| one.device == Device::Cpu).map(|place| found.remove(place));
        let processor = processor.unwrap_or_else(|| DiscoveredDevice::named(Device::Cpu, "a processor"));
        let (cuda, graphics): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|one| matches!(one.device, Device::Cuda(_)));
        Self { cuda: OnceLock::from(cuda), graphics: OnceLock::from(graphics), cpu: OnceLock::from(processor) }
    }

    /// All of them, the best first.
    pub fn all(&self) -> impl Iterator<Item = &DiscoveredDevice> {
        self.cuda().iter().chain(self.graphics.get_or_init(graphics)).chain([self.cpu()])
    }

    /// What a word of the configuration means here. A named device is taken at its word; see [`Devices::present`].
    pub fn choose(&self, wanted: Wanted) -> Result<Device, DeviceError> {
        let first = |suits: fn(&DiscoveredDevice) -> bool| self.all().find(|one| suits(one)).map(|one| one.device);
        match wanted {
            Wanted::This(device) => Ok(device),
            Wanted::Auto => Ok(first(|one| !one.software).unwrap_or(Device::Cpu)),
            Wanted::Xpu => first(|one| one.intel).ok_or_else(|| self.missing(wanted)),
        }
    }

    /// A device as it was found, or an error that says what is there.
    pub fn present(&self, device: Device) -> Result<DiscoveredDevice, DeviceError> {
        match device {
            Device::Mock => Ok(DiscoveredDevice::named(Device::Mock, "mock")),
            // It is always there: no reason to load a GPU's driver.
            Device::Cpu => Ok(self.cpu().clone()),
            _ => self.all().find(|one| one.device == device).cloned().ok_or_else(|| self.missing(device)),
        }
    }

    /// How many CUDA devices there are; no other driver is loaded to find out.
    pub fn cuda_gpus(&self) -> u64 {
        self.cuda().len() as u64
    }

    fn cuda(&self) -> &[DiscoveredDevice] {
        self.cuda.get_or_init(cuda)
    }

    fn cpu(&self) -> &DiscoveredDevice {
        self.cpu.get_or_init(cpu)
    }

    fn missing(&self, wanted: impl ToString) -> DeviceError {
        let names: Vec<String> = self.all().map(|one| format!("{} ({})", one.device, one.name)).collect();
        DeviceError::Missing { wanted: wanted.to_string(), found: names.join(", ") }
    }
}
