//! Where a workload runs.

use crate::ZooError;
use std::{fmt, str::FromStr};

/// A device by its kind and its index among its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Device {
    /// An NVIDIA GPU.
    Cuda(u16),
    /// A Vulkan adapter.
    Vulkan(u16),
    /// A Metal adapter.
    Metal(u16),
    /// This machine's processor.
    Cpu,
    /// Nothing: times come from a script.
    Mock,
}

impl Device {
    /// The kind without the index: `cuda` for `cuda:0`.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Cuda(_) => "cuda",
            Self::Vulkan(_) => "vulkan",
            Self::Metal(_) => "metal",
            Self::Cpu => "cpu",
            Self::Mock => "mock",
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda(index) | Self::Vulkan(index) | Self::Metal(index) => write!(f, "{}:{index}", self.kind()),
            Self::Cpu | Self::Mock => f.write_str(self.kind()),
        }
    }
}

impl FromStr for Device {
    type Err = ZooError;

    fn from_str(name: &str) -> Result<Self, ZooError> {
        let unknown = || {
            let known = ["cuda", "vulkan", "metal", "wgpu", "cpu", "mock"].map(str::to_owned);
            ZooError::unknown("device", name, known.to_vec())
        };
        let (kind, index) = match name.split_once(':') {
            Some((kind, index)) => (kind, Some(index.parse::<u16>().map_err(|_| unknown())?)),
            None => (name, None),
        };
        match (kind, index) {
            ("cuda", index) => Ok(Self::Cuda(index.unwrap_or(0))),
            ("vulkan", index) => Ok(Self::Vulkan(index.unwrap_or(0))),
            ("metal" | "mps", index) => Ok(Self::Metal(index.unwrap_or(0))),
            ("wgpu", index) if cfg!(target_os = "macos") => Ok(Self::Metal(index.unwrap_or(0))),
            ("wgpu", index) => Ok(Self::Vulkan(index.unwrap_or(0))),
            ("cpu", None) => Ok(Self::Cpu),
            ("mock", None) => Ok(Self::Mock),
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_with_and_without_an_index() {
        for (name, expected) in [
            ("cuda", Device::Cuda(0)),
            ("cuda:3", Device::Cuda(3)),
            ("vulkan", Device::Vulkan(0)),
            ("mps", Device::Metal(0)),
            ("cpu", Device::Cpu),
        ] {
            assert_eq!(name.parse(), Ok(expected));
        }
        for name in ["cud", "cuda:", "cuda:-1", "cuda:x", "cpu:0", "tpu", ""] {
            assert!(name.parse::<Device>().is_err(), "{name}");
        }
        assert!("vulcan".parse::<Device>().unwrap_err().to_string().contains("did you mean \"vulkan\""));
    }
}
