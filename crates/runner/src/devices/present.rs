//! The devices of a machine, this one or an invented one, and what words mean among them.

use super::discovered::DiscoveredDevice;
use crate::chatter::marked;
use crate::entries::Wanted;
use crate::platforms::{self, Platform};
use calorimeter_case::{Device, DeviceKind};
use std::sync::OnceLock;

/// The devices of a machine. Each platform is asked once, and not before its devices matter.
#[derive(Debug)]
pub struct Devices(Vec<Asked>);

/// A platform with its devices, once it was asked.
#[derive(Debug)]
struct Asked {
    platform: &'static dyn Platform,
    found: OnceLock<Vec<DiscoveredDevice>>,
}

impl Asked {
    fn found(&self) -> &[DiscoveredDevice] {
        // A driver that is missing something says so to whoever is there.
        let kind = self.platform.kinds().first().map_or_else(String::new, |kind| kind.name().to_string());
        self.found.get_or_init(|| marked(&kind, || self.platform.find()))
    }
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
    /// One is wanted, and all of a kind were named.
    #[error("{kind}:all means several devices, and this takes one; name it, for example {kind}:0")]
    One {
        /// The kind.
        kind: DeviceKind,
    },
    /// Times on them would be of different things.
    #[error(
        "{kind}:all: {kind} has devices that are not alike, whose times do not belong into one run: {found}. Name \
         one of them"
    )]
    Unlike {
        /// The kind.
        kind: DeviceKind,
        /// What is there.
        found: String,
    },
}

/// The devices of this machine.
pub fn here() -> &'static Devices {
    static HERE: OnceLock<Devices> = OnceLock::new();
    platforms::name_ours();
    HERE.get_or_init(|| Devices::of(|_| OnceLock::new()))
}

/// A device of this machine.
pub fn present(device: Device) -> Result<DiscoveredDevice, DeviceError> {
    here().present(device)
}

impl Devices {
    /// What each platform has, or is yet to be asked.
    fn of(found: impl Fn(&'static dyn Platform) -> OnceLock<Vec<DiscoveredDevice>>) -> Self {
        let asked = |platform| Asked { platform, found: found(platform) };
        Self(platforms::all().into_iter().map(asked).collect())
    }

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
        let mut devices: Vec<DiscoveredDevice> = devices.into_iter().collect();
        if devices.iter().all(|one| one.device != Device::Cpu) {
            devices.push(DiscoveredDevice::named(Device::Cpu, "a processor"));
        }
        Self::of(|platform| {
            let its = |one: &&DiscoveredDevice| platform.kinds().contains(&one.device.kind());
            let found: Vec<DiscoveredDevice> = devices.iter().filter(its).cloned().collect();
            if platform.is_scripted() && found.is_empty() { OnceLock::new() } else { OnceLock::from(found) }
        })
    }

    /// All of them, the best first; the mock device is not one of a machine.
    pub fn all(&self) -> impl Iterator<Item = &DiscoveredDevice> {
        self.0.iter().filter(|asked| !asked.platform.is_scripted()).flat_map(Asked::found)
    }

    /// What a word of the configuration means here. A named device is taken at its word; see [`Devices::present`].
    pub fn choose(&self, wanted: Wanted) -> Result<Device, DeviceError> {
        let first = |suits: fn(&DiscoveredDevice) -> bool| self.all().find(|one| suits(one)).map(|one| one.device);
        match wanted {
            Wanted::This(device) => Ok(device),
            Wanted::Auto => Ok(first(|one| !one.software).unwrap_or(Device::Cpu)),
            Wanted::Xpu => first(|one| one.intel).ok_or_else(|| self.missing(wanted)),
            Wanted::All(kind) => Err(DeviceError::One { kind }),
        }
    }

    /// The devices that share what is wanted: more than one only where all of a kind are, which then must be alike.
    /// Those that a processor imitates do not count beside real ones.
    pub fn sharing(&self, wanted: Wanted) -> Result<Vec<Device>, DeviceError> {
        let Wanted::All(kind) = wanted else { return Ok(vec![self.choose(wanted)?]) };
        let of_kind = || self.of_kind(kind).iter().filter(|one| one.device.kind() == kind);
        let is_real = of_kind().any(|one| !one.software);
        let all: Vec<&DiscoveredDevice> = of_kind().filter(|one| one.software != is_real).collect();
        let first = *all.first().ok_or_else(|| self.missing(wanted))?;
        if !all.iter().all(|one| one.is_like(first)) {
            let told: Vec<String> =
                all.iter().map(|one| format!("{} ({})", one.device, one.name_and_driver())).collect();
            return Err(DeviceError::Unlike { kind, found: told.join(", ") });
        }
        Ok(all.into_iter().map(|one| one.device).collect())
    }

    /// A device as it was found, or an error that says what is there.
    pub fn present(&self, device: Device) -> Result<DiscoveredDevice, DeviceError> {
        let found = self.of_kind(device.kind()).iter().find(|one| one.device == device);
        found.cloned().ok_or_else(|| self.missing(device))
    }

    /// How many CUDA devices there are; no other driver is loaded to find out.
    pub fn cuda_gpus(&self) -> u64 {
        self.of_kind(DeviceKind::Cuda).len() as u64
    }

    /// The devices of the platform that drives this kind.
    fn of_kind(&self, kind: DeviceKind) -> &[DiscoveredDevice] {
        let drives = |asked: &&Asked| asked.platform.kinds().contains(&kind);
        self.0.iter().find(drives).map_or(&[], Asked::found)
    }

    fn missing(&self, wanted: impl ToString) -> DeviceError {
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
            ..DiscoveredDevice::named(Device::Vulkan(index as u16), *name)
        };
        Devices::invented(names.iter().enumerate().map(gpu))
    }

    #[test]
    fn all_devices_of_a_kind_share_the_work_where_they_are_alike() {
        let all = |names: &[&str]| {
            let sharing = machine(names).sharing(Wanted::All(DeviceKind::Vulkan));
            sharing.map(|all| all.len()).map_err(|error| error.to_string())
        };
        assert_eq!(all(&["A", "A", "A"]), Ok(3));
        assert_eq!(all(&["A", "A", "llvmpipe"]), Ok(2));
        assert_eq!(all(&["llvmpipe"]), Ok(1));
        let missing = all(&[]).unwrap_err();
        assert!(missing.starts_with("device vulkan:all is not here; found: cpu"), "{missing}");
        let unlike = all(&["A", "B"]).unwrap_err();
        assert!(unlike.ends_with("into one run: vulkan:0 (A), vulkan:1 (B). Name one of them"), "{unlike}");
    }

    #[test]
    fn who_takes_one_device_is_not_given_all() {
        let error = machine(&["A", "A"]).choose(Wanted::All(DeviceKind::Vulkan)).unwrap_err().to_string();
        assert_eq!(error, "vulkan:all means several devices, and this takes one; name it, for example vulkan:0");
    }
}
