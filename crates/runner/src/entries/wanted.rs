//! Device selection of the command line and configuration files.

use super::word::word;
use calorimeter_case::UnknownName;
use calorimeter_zoo::{Device, DeviceKind};
use std::fmt;
use std::str::FromStr;

/// Requested device or devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    /// Best available device.
    #[default]
    Auto,
    /// First Intel GPU, `xpu` in torch.
    Xpu,
    /// Single device.
    This(Device),
    /// All devices of a kind, which share the work.
    All(DeviceKind),
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "auto" => Ok(Self::Auto),
            "xpu" => Ok(Self::Xpu),
            _ => match name.strip_suffix(":all") {
                Some(kind) => all(kind).map(Self::All),
                None => named(name).map(Self::This),
            },
        }
    }
}

fn named(name: &str) -> Result<Device, String> {
    name.parse().map_err(|error: UnknownName| format!("{error}, auto, xpu, mps"))
}

/// Parses a kind of which there may be several devices.
fn all(name: &str) -> Result<DeviceKind, String> {
    let device = named(name)?;
    let kind = device.kind();
    if name.contains(':') {
        return Err(format!("invalid device \"{name}:all\": expected {device} or {kind}:all"));
    }
    if kind.is_counted() {
        Ok(kind)
    } else {
        Err(format!("invalid device \"{name}:all\": there is a single {name} device; use {name}"))
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Xpu => f.write_str("xpu"),
            Self::This(device) => device.fmt(f),
            Self::All(kind) => write!(f, "{kind}:all"),
        }
    }
}

word!(
    Wanted,
    "a device: auto, cuda, cuda:1, cuda:all, vulkan, metal, wgpu or cpu; or xpu or mps as in torch",
    schemars::json_schema!({
        "type": "string",
        "pattern": format!("^(auto|xpu|cpu|({})(:([0-9]{{1,5}}|all))?)$", counted().join("|")),
        "examples": ["auto", "cuda", "cuda:all", "vulkan", "metal", "cpu"],
    })
);

/// Regular expressions for kinds whose devices have an index.
fn counted() -> Vec<String> {
    let ours = ["mock", "cuda", "vulkan", "metal", "mps", "wgpu"].map(str::to_owned);
    let others = DeviceKind::known().into_iter().filter(|kind| !DeviceKind::ALL.contains(kind));
    ours.into_iter().chain(others.map(|kind| regex::escape(kind.name().as_str()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_devices_of_a_kind_are_one_word_and_one_processor_is_not_all() {
        for (word, parsed) in [
            ("cuda:all", Ok(Wanted::All(DeviceKind::Cuda))),
            ("mps:all", Ok(Wanted::All(DeviceKind::Metal))),
            ("cuda:1", Ok(Wanted::This(Device::Cuda(1)))),
            ("cpu:all", Err("invalid device \"cpu:all\": there is a single cpu device; use cpu")),
            ("cuda:1:all", Err("invalid device \"cuda:1:all\": expected cuda:1 or cuda:all")),
        ] {
            assert_eq!(word.parse::<Wanted>(), parsed.map_err(str::to_owned), "{word}");
        }
        assert_eq!(Wanted::All(DeviceKind::Vulkan).to_string().parse(), Ok(Wanted::All(DeviceKind::Vulkan)));
        assert!("cud:all".parse::<Wanted>().unwrap_err().contains("did you mean \"cuda\""));
        assert!("auto:all".parse::<Wanted>().is_err());
    }
}
