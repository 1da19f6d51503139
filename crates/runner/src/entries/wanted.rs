//! A device as it is asked for.

use super::word::word;
use calorimeter_case::UnknownName;
use calorimeter_zoo::Device;
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
        "pattern": "^(auto|xpu|cpu|mock|(cuda|vulkan|metal|mps|wgpu)(:[0-9]{1,5})?)$",
        "examples": ["auto", "cuda", "vulkan", "metal", "cpu"],
    })
);
