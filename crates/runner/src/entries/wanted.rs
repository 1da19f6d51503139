//! A device as it is asked for.

use super::word::word;
use calorimeter_case::UnknownName;
use calorimeter_zoo::{Device, DeviceKind};
use std::fmt;
use std::str::FromStr;

/// A device as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    /// The best one that is there.
    #[default]
    Auto,
    /// The first Intel GPU, which torch calls `xpu`.
    Xpu,
    /// This one.
    This(Device),
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "auto" => Ok(Self::Auto),
            "xpu" => Ok(Self::Xpu),
            _ => name.parse().map(Self::This).map_err(|error: UnknownName| format!("{error}, auto, xpu, mps")),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Xpu => f.write_str("xpu"),
            Self::This(device) => device.fmt(f),
        }
    }
}

word!(
    Wanted,
    "a device: auto, cuda, cuda:1, vulkan, metal, wgpu, cpu; torch's xpu and mps are understood",
    schemars::json_schema!({
        "type": "string",
        "pattern": format!("^(auto|xpu|cpu|mock|({})(:[0-9]{{1,5}})?)$", counted().join("|")),
        "examples": ["auto", "cuda", "vulkan", "metal", "cpu"],
    })
);

/// Expressions for the kinds of which there may be many.
fn counted() -> Vec<String> {
    let ours = ["cuda", "vulkan", "metal", "mps", "wgpu"].map(str::to_owned);
    let others = DeviceKind::known().into_iter().filter(|kind| !DeviceKind::ALL.contains(kind));
    ours.into_iter().chain(others.map(|kind| regex::escape(kind.name().as_str()))).collect()
}
