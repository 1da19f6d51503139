//! Where a workload runs.

use crate::UnknownName;
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
    pub fn kind(self) -> DeviceKind {
        match self {
            Self::Cuda(_) => DeviceKind::Cuda,
            Self::Vulkan(_) => DeviceKind::Vulkan,
            Self::Metal(_) => DeviceKind::Metal,
            Self::Cpu => DeviceKind::Cpu,
            Self::Mock => DeviceKind::Mock,
        }
    }
}

/// What devices of one kind have in common: whose driver or library runs the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeviceKind {
    /// NVIDIA's GPUs through CUDA.
    Cuda,
    /// GPUs through Vulkan.
    Vulkan,
    /// GPUs through Metal.
    Metal,
    /// Processors.
    Cpu,
    /// The scripted one.
    Mock,
}

impl DeviceKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Cuda, Self::Vulkan, Self::Metal, Self::Cpu, Self::Mock];

    /// Whether a host enqueues work on it.
    pub fn is_gpu(self) -> bool {
        matches!(self, Self::Cuda | Self::Vulkan | Self::Metal)
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Cuda => "cuda",
            Self::Vulkan => "vulkan",
            Self::Metal => "metal",
            Self::Cpu => "cpu",
            Self::Mock => "mock",
        })
    }
}

impl serde::Serialize for DeviceKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda(index) | Self::Vulkan(index) | Self::Metal(index) => write!(f, "{}:{index}", self.kind()),
            Self::Cpu | Self::Mock => self.kind().fmt(f),
        }
    }
}

impl FromStr for Device {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let unknown = || UnknownName::new("device", name, ["cuda", "vulkan", "metal", "wgpu", "cpu", "mock"]);
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

crate::written_as_a_name!(
    Device,
    "Device",
    "a device such as cuda:0, vulkan:0, metal:0 or cpu",
    DeviceKind::ALL.iter().map(ToString::to_string).collect()
);

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
