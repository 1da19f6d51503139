//! Implementations of workloads.

use crate::{Name, NameTaken, Registry, UnknownName};
use std::{fmt, str::FromStr};

/// Code that computes a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Implementation {
    /// burn with one kernel per operation.
    Eager,
    /// burn with fused operations.
    Fused,
    /// CubeCL kernels of this project inside the burn model.
    Cube,
    /// Vendor libraries and hand-written kernels, without burn.
    Native,
    /// Implementation registered by another crate.
    Other(Name),
}

/// Implementations registered by other crates, each with a one-line description.
static REGISTERED: Registry<str> = Registry::new("implementation");

impl Implementation {
    /// Built-in implementations, in display order.
    pub const ALL: [Self; 4] = [Self::Eager, Self::Fused, Self::Cube, Self::Native];

    /// All implementations: built-in, then registered ones in order of registration.
    pub fn all() -> Vec<Self> {
        Self::ALL.into_iter().chain(REGISTERED.names().into_iter().map(Self::Other)).collect()
    }

    /// Registers an implementation under a free name, with a one-line description.
    pub fn register(name: impl Into<Name>, about: &'static str) -> Result<Self, NameTaken> {
        let name = name.into();
        if Self::ALL.iter().any(|builtin| builtin.name() == name) {
            return Err(NameTaken::new("implementation", name));
        }
        REGISTERED.add(name, about)?;
        Ok(Self::Other(name))
    }

    /// Implementation named in a record. An unknown name, written by a program with other registrations, becomes
    /// `Other`.
    pub fn from_record(name: &str) -> Self {
        name.parse().unwrap_or_else(|_| Self::Other(name.to_owned().into()))
    }

    /// Deserializes an implementation with [`Implementation::from_record`].
    pub fn read_recorded<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from_record(&<std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?))
    }

    /// True if burn computes the model. burn multiplies floats only.
    pub const fn uses_burn(self) -> bool {
        matches!(self, Self::Eager | Self::Fused | Self::Cube)
    }

    /// Name of the implementation.
    pub const fn name(self) -> Name {
        match self {
            Self::Eager => Name::new("eager"),
            Self::Fused => Name::new("fused"),
            Self::Cube => Name::new("cube"),
            Self::Native => Name::new("native"),
            Self::Other(name) => name,
        }
    }

    /// Description in one line.
    pub fn description(self) -> &'static str {
        match self {
            Self::Eager => "burn with one kernel per operation",
            Self::Fused => "burn with operations fused into fewer kernels, comparable to a compiled model",
            Self::Cube => "portable CubeCL kernels inside the burn model",
            Self::Native => {
                "vendor libraries and hand-written kernels without burn: cuBLASLt and CUDA C++ on NVIDIA GPUs, SIMD \
                 kernels on the CPU"
            }
            Self::Other(name) => REGISTERED.find(name.as_str()).unwrap_or("registered by another crate"),
        }
    }
}

impl fmt::Display for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

impl FromStr for Implementation {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        // Almost all journal lines name a built-in implementation; this path allocates no list for them.
        if let Some(builtin) = Self::ALL.into_iter().find(|builtin| builtin.name() == name) {
            return Ok(builtin);
        }
        let known = Self::all();
        let found = known.iter().find(|implementation| implementation.name().as_str() == name).copied();
        found.ok_or_else(|| UnknownName::new("implementation", name, known.iter().map(ToString::to_string)))
    }
}

crate::written_as_a_name!(
    Implementation,
    "Implementation",
    "implementation: eager, fused, cube, native, or one of --python",
    Implementation::all().iter().map(ToString::to_string).collect()
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_accepts_unknown_implementation() {
        let case = serde_json::json!({
            "id": "x", "mode": "foreign", "workload": "add", "recipe": "baseline", "implementation": "old.so", "device": "cpu",
            "dtype": "u8", "shape_name": "", "shape": {}, "regime": "device-hot",
        });
        let case: crate::Case = serde_json::from_value(case).unwrap();
        assert_eq!(case.implementation, Implementation::Other("old.so".into()));
        assert_eq!(serde_json::to_value(&case).unwrap()["implementation"], "old.so");
        assert_eq!(Implementation::from_record("native"), Implementation::Native);
    }

    #[test]
    fn registered_implementation_parses() {
        let other = Implementation::register("by_hand", "abacus").unwrap();
        assert_eq!("by_hand".parse(), Ok(other));
        assert_eq!((other.to_string(), other.description()), ("by_hand".into(), "abacus"));
        assert_eq!(Implementation::all()[4..], [other]);
        for taken in ["by_hand", "fused"] {
            assert!(Implementation::register(taken, "").is_err(), "{taken}");
        }
        assert_eq!("by_hnd".parse::<Implementation>().unwrap_err().nearest.as_deref(), Some("by_hand"));
    }
}
