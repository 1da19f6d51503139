//! Device selection of the command line and configuration files.

use super::word::word;
use calorimeter_case::UnknownName;
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
    name.parse().map_err(|error: UnknownName| format!("{error}, auto, xpu, mps"))
}

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
        assert!("cud:all".parse::<DeviceSelection>().unwrap_err().contains("\"cuda\""));
        for wrong in ["auto:all", "cpu:all", "cuda:1:all"] {
            assert!(wrong.parse::<DeviceSelection>().is_err(), "{wrong}");
        }
    }
}
