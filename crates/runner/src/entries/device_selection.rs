//! Device selection of the command line and configuration files.

use super::word::word;
use calorimeter_case::UnknownName;
use calorimeter_probe::devices::{Devices, DiscoveredDevice, MissingDevice, this_machine};
use calorimeter_zoo::{Device, DeviceKind};
use std::fmt;
use std::str::FromStr;

/// Requested device or devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceSelection {
    /// Best available device.
    #[default]
    Auto,
    /// First Intel GPU, `xpu` in torch.
    Xpu,
    /// Single device.
    Single(Device),
    /// All devices of a kind, which share the work.
    All(DeviceKind),
}

/// Error of device selection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// The device does not exist.
    #[error(transparent)]
    Missing(#[from] MissingDevice),
    /// All devices of a kind were requested where one is expected.
    #[error("{0}:all selects several devices, but one is expected, e.g. {0}:0")]
    SeveralDevices(DeviceKind),
    /// The devices of a kind differ, so that their times cannot be mixed.
    #[error("{kind}:all: the devices differ, so their times cannot be mixed: {found}. Select one of them")]
    DifferentDevices {
        /// Device kind.
        kind: DeviceKind,
        /// Devices that exist.
        found: String,
    },
}

impl DeviceSelection {
    /// Selects the device for a setting of the configuration. An explicit device is returned unchecked; see
    /// [`Devices::find`].
    pub fn choose(self, devices: &Devices) -> Result<Device, SelectionError> {
        let first = |suits: fn(&DiscoveredDevice) -> bool| devices.all().find(|one| suits(one)).map(|one| one.device);
        match self {
            Self::Single(device) => Ok(device),
            Self::Auto => Ok(first(|one| !one.software).unwrap_or(Device::Cpu)),
            Self::Xpu => first(|one| one.intel).ok_or_else(|| devices.missing_device(self, DeviceKind::Vulkan).into()),
            Self::All(kind) => Err(SelectionError::SeveralDevices(kind)),
        }
    }

    /// Selects and finds the device on this machine.
    pub fn find(self) -> Result<DiscoveredDevice, SelectionError> {
        let devices = this_machine();
        Ok(devices.find(self.choose(devices)?)?)
    }

    /// Selects the devices that share the work: one, or all of a kind, which must be equivalent. Emulated devices count
    /// only if there are no real ones.
    pub fn choose_all(self, devices: &Devices) -> Result<Vec<Device>, SelectionError> {
        let Self::All(kind) = self else { return Ok(vec![self.choose(devices)?]) };
        let of_kind = || devices.of_platform(kind).iter().filter(|one| one.device.kind() == kind);
        let is_real = of_kind().any(|one| !one.software);
        let all: Vec<&DiscoveredDevice> = of_kind().filter(|one| one.software != is_real).collect();
        let first = *all.first().ok_or_else(|| devices.missing_device(self, kind))?;
        if !all.iter().all(|one| one.is_equivalent(first)) {
            let names: Vec<String> =
                all.iter().map(|one| format!("{} ({})", one.device, one.name_and_driver())).collect();
            return Err(SelectionError::DifferentDevices { kind, found: names.join(", ") });
        }
        Ok(all.into_iter().map(|one| one.device).collect())
    }
}

impl FromStr for DeviceSelection {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "auto" => Ok(Self::Auto),
            "xpu" => Ok(Self::Xpu),
            _ => match name.strip_suffix(":all") {
                Some(kind) => parse_kind(kind).map(Self::All),
                None => parse_device(name).map(Self::Single),
            },
        }
    }
}

fn parse_device(name: &str) -> Result<Device, String> {
    name.parse().map_err(|error: UnknownName| {
        let mut error = UnknownName::new("device", name, error.known.into_iter().chain(SELECTORS.map(str::to_owned)));
        if name == "gpu" {
            error.nearest = Some("auto".into());
        }
        error.to_string()
    })
}

/// Names of selections other than device kinds.
const SELECTORS: [&str; 3] = ["auto", "xpu", "mps"];

/// Parses a kind of which there may be several devices.
fn parse_kind(name: &str) -> Result<DeviceKind, String> {
    let device = parse_device(name)?;
    let kind = device.kind();
    if name.contains(':') {
        return Err(format!("invalid device \"{name}:all\": expected {device} or {kind}:all"));
    }
    if kind.has_index() {
        Ok(kind)
    } else {
        Err(format!("invalid device \"{name}:all\": there is a single {name} device; use {name}"))
    }
}

impl fmt::Display for DeviceSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Xpu => f.write_str("xpu"),
            Self::Single(device) => device.fmt(f),
            Self::All(kind) => write!(f, "{kind}:all"),
        }
    }
}

word!(
    DeviceSelection,
    "a device: auto, cuda, cuda:1, cuda:all, vulkan, metal, wgpu or cpu; or xpu or mps as in torch",
    schemars::json_schema!({
        "type": "string",
        "pattern": format!("^(auto|xpu|cpu|({})(:([0-9]{{1,5}}|all))?)$", indexed_kind_patterns().join("|")),
        "examples": ["auto", "cuda", "cuda:all", "vulkan", "metal", "cpu"],
    })
);

/// Regular expressions for kinds whose devices have an index.
fn indexed_kind_patterns() -> Vec<String> {
    let ours = ["mock", "cuda", "vulkan", "metal", "mps", "wgpu"].map(str::to_owned);
    let others = DeviceKind::all().into_iter().filter(|kind| !DeviceKind::ALL.contains(kind));
    ours.into_iter().chain(others.map(|kind| regex::escape(kind.name().as_str()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_selections_parse_and_single_devices_reject_all() {
        for (word, parsed) in [
            ("cuda:all", DeviceSelection::All(DeviceKind::Cuda)),
            ("mps:all", DeviceSelection::All(DeviceKind::Metal)),
            ("cuda:1", DeviceSelection::Single(Device::Cuda(1))),
        ] {
            assert_eq!(word.parse(), Ok(parsed), "{word}");
        }
        assert_eq!(
            DeviceSelection::All(DeviceKind::Vulkan).to_string().parse(),
            Ok(DeviceSelection::All(DeviceKind::Vulkan))
        );
        for (wrong, suggestion) in [("gpu", "\"auto\""), ("aut", "\"auto\""), ("vulcan", "\"vulkan\"")] {
            let error = wrong.parse::<DeviceSelection>().unwrap_err();
            assert!(error.contains(&format!("did you mean {suggestion}?")), "{error}");
        }
        assert!("cud:all".parse::<DeviceSelection>().unwrap_err().contains("\"cuda\""));
        for (wrong, part) in [("auto:all", "auto"), ("cpu:all", "use cpu"), ("cuda:1:all", "cuda:all")] {
            let error = wrong.parse::<DeviceSelection>().unwrap_err();
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }

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
            let sharing = DeviceSelection::All(DeviceKind::Vulkan).choose_all(&machine(names));
            sharing.map(|all| all.len()).map_err(|error| error.to_string())
        };
        assert_eq!(all(&["A", "A", "A"]), Ok(3));
        assert_eq!(all(&["A", "A", "llvmpipe"]), Ok(2));
        assert_eq!(all(&["llvmpipe"]), Ok(1));
        let missing = all(&[]).unwrap_err();
        assert!(missing.starts_with("device vulkan:all not found; available: cpu"), "{missing}");
        assert_eq!(missing.contains("`--features wgpu`"), !cfg!(feature = "wgpu"), "{missing}");
        let present = machine(&["A"]).find(Device::Cuda(7)).unwrap_err();
        assert_eq!(present.feature.is_some(), !cfg!(feature = "native"), "{present}");
        let unlike = all(&["A", "B"]).unwrap_err();
        assert!(unlike.ends_with("cannot be mixed: vulkan:0 (A), vulkan:1 (B). Select one of them"), "{unlike}");
    }

    #[test]
    fn single_device_commands_reject_all() {
        let error = DeviceSelection::All(DeviceKind::Vulkan).choose(&machine(&["A", "A"])).unwrap_err().to_string();
        assert_eq!(error, "vulkan:all selects several devices, but one is expected, e.g. vulkan:0");
    }
}
