//! Devices and device kinds.

use crate::{Name, NameTaken, Registry, UnknownName};
use std::{fmt, str::FromStr};

/// A device: kind and index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Device {
    /// An NVIDIA GPU.
    Cuda(u16),
    /// A Vulkan adapter.
    Vulkan(u16),
    /// A Metal adapter.
    Metal(u16),
    /// The CPU of this host.
    Cpu,
    /// Scripted times without hardware. Index 0 is written without the index.
    Mock(u16),
    /// Device of a kind registered by another crate.
    Other(Name, u16),
}

impl Device {
    /// Kind without the index: `cuda` for `cuda:0`.
    pub fn kind(self) -> DeviceKind {
        match self {
            Self::Cuda(_) => DeviceKind::Cuda,
            Self::Vulkan(_) => DeviceKind::Vulkan,
            Self::Metal(_) => DeviceKind::Metal,
            Self::Cpu => DeviceKind::Cpu,
            Self::Mock(_) => DeviceKind::Mock,
            Self::Other(name, _) => DeviceKind::Other(name),
        }
    }
}

/// Kind of device, by the driver or library that runs the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeviceKind {
    /// NVIDIA GPUs through CUDA.
    Cuda,
    /// GPUs through Vulkan.
    Vulkan,
    /// GPUs through Metal.
    Metal,
    /// CPUs.
    Cpu,
    /// Scripted device.
    Mock,
    /// Kind registered by another crate.
    Other(Name),
}

/// Kinds registered by other crates.
static REGISTERED: Registry<()> = Registry::new("device kind");

/// Alternative names: wgpu's, for the graphics API that it uses on this platform, and PyTorch's for Metal.
const ALIASES: [(&str, DeviceKind); 2] = [
    ("wgpu", if cfg!(target_os = "macos") { DeviceKind::Metal } else { DeviceKind::Vulkan }),
    ("mps", DeviceKind::Metal),
];

/// Device selectors that name no kind; they cannot be registered.
const RESERVED_NAMES: [&str; 2] = ["auto", "xpu"];

impl DeviceKind {
    /// Built-in kinds.
    pub const ALL: [Self; 5] = [Self::Cuda, Self::Vulkan, Self::Metal, Self::Cpu, Self::Mock];

    /// All kinds: built-in, then registered ones in order of registration.
    pub fn all() -> Vec<Self> {
        Self::ALL.into_iter().chain(REGISTERED.names().into_iter().map(Self::Other)).collect()
    }

    /// Registers a kind under a free name. A device of it is written as the name, a colon and its index.
    pub fn register(name: impl Into<Name>) -> Result<Self, NameTaken> {
        let name = name.into();
        let builtin = Self::ALL.iter().map(|kind| kind.name().as_str());
        if builtin.chain(ALIASES.iter().map(|(alias, _)| *alias)).chain(RESERVED_NAMES).any(|taken| name == taken) {
            return Err(NameTaken::new("device kind", name));
        }
        REGISTERED.add(name, &())?;
        Ok(Self::Other(name))
    }

    /// Name of the kind.
    pub const fn name(self) -> Name {
        match self {
            Self::Cuda => Name::new("cuda"),
            Self::Vulkan => Name::new("vulkan"),
            Self::Metal => Name::new("metal"),
            Self::Cpu => Name::new("cpu"),
            Self::Mock => Name::new("mock"),
            Self::Other(name) => name,
        }
    }

    /// Device with this index. The index is ignored for the CPU.
    pub fn device(self, index: u16) -> Device {
        match self {
            Self::Cuda => Device::Cuda(index),
            Self::Vulkan => Device::Vulkan(index),
            Self::Metal => Device::Metal(index),
            Self::Cpu => Device::Cpu,
            Self::Mock => Device::Mock(index),
            Self::Other(name) => Device::Other(name, index),
        }
    }

    /// True if a host may have several devices of this kind.
    pub fn has_index(self) -> bool {
        self != Self::Cpu
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
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
            Self::Cuda(index) | Self::Vulkan(index) | Self::Metal(index) | Self::Other(_, index) => {
                write!(f, "{}:{index}", self.kind())
            }
            Self::Mock(index @ 1..) => write!(f, "{}:{index}", self.kind()),
            Self::Cpu | Self::Mock(0) => self.kind().fmt(f),
        }
    }
}

impl FromStr for Device {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let unknown = || {
            let builtin = ["cuda", "vulkan", "metal", "wgpu", "cpu", "mock"];
            UnknownName::new(
                "device",
                name,
                builtin.into_iter().chain(REGISTERED.names().into_iter().map(Name::as_str)),
            )
        };
        let (kind, index) = match name.split_once(':') {
            Some((kind, index)) => (kind, Some(index.parse::<u16>().map_err(|_| unknown())?)),
            None => (name, None),
        };
        // Almost all journal lines name a built-in kind; this path allocates no list for them.
        let builtin = DeviceKind::ALL.into_iter().find(|builtin| builtin.name() == kind);
        let known = builtin.or_else(|| DeviceKind::all().into_iter().find(|known| known.name() == kind));
        let alias = || ALIASES.iter().find(|(alias, _)| *alias == kind).map(|(_, kind)| *kind);
        let kind = known.or_else(alias).filter(|kind| index.is_none() || kind.has_index());
        Ok(kind.ok_or_else(unknown)?.device(index.unwrap_or(0)))
    }
}

crate::written_as_a_name!(
    Device,
    "Device",
    "a device such as cuda:0, vulkan:0, metal:0 or cpu",
    DeviceKind::all().iter().map(ToString::to_string).collect()
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_index_is_optional() {
        for (name, expected) in [
            ("cuda", Device::Cuda(0)),
            ("cuda:3", Device::Cuda(3)),
            ("vulkan", Device::Vulkan(0)),
            ("mps", Device::Metal(0)),
            ("cpu", Device::Cpu),
            ("mock", Device::Mock(0)),
            ("mock:1", Device::Mock(1)),
        ] {
            assert_eq!(name.parse(), Ok(expected));
            assert_eq!(expected.to_string().parse(), Ok(expected));
        }
        for name in ["cud", "cuda:", "cuda:-1", "cuda:x", "cpu:0", "tpu", ""] {
            assert!(name.parse::<Device>().is_err(), "{name}");
        }
        assert_eq!("vulcan".parse::<Device>().unwrap_err().nearest.as_deref(), Some("vulkan"));
    }

    #[test]
    fn registered_device_kind_parses() {
        let npu = DeviceKind::register("npu").unwrap();
        assert_eq!(("npu".parse(), "npu:1".parse()), (Ok(npu.device(0)), Ok(npu.device(1))));
        assert_eq!((npu.device(1).kind(), npu.device(1).to_string()), (npu, "npu:1".into()));
        assert_eq!(DeviceKind::all()[5..], [npu]);
        for taken in ["npu", "cuda", "mps", "auto"] {
            assert!(DeviceKind::register(taken).is_err(), "{taken}");
        }
        assert_eq!("nqu".parse::<Device>().unwrap_err().nearest.as_deref(), Some("npu"));
    }
}
