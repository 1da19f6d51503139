//! Whose kernels run.

use crate::{Name, NameTaken, Registry, UnknownName};
use std::{fmt, str::FromStr};

/// The axis that tells one way to compute a workload from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Implementation {
    /// burn, every operation a kernel of its own.
    Eager,
    /// burn with operations fused into fewer kernels.
    Fused,
    /// CubeCL kernels of ours inside the burn model.
    Cube,
    /// Vendor libraries and hand-written kernels, without burn.
    Native,
    /// One that another crate has registered.
    Other(Name),
}

/// What other crates have registered, each with a line about it.
static OTHERS: Registry<str> = Registry::new("implementation");

impl Implementation {
    /// Every implementation of ours, in the order they are shown.
    pub const ALL: [Self; 4] = [Self::Eager, Self::Fused, Self::Cube, Self::Native];

    /// Every implementation: ours, then those of other crates in the order of registration.
    pub fn known() -> Vec<Self> {
        Self::ALL.into_iter().chain(OTHERS.names().into_iter().map(Self::Other)).collect()
    }

    /// Adds one under a name that none has yet, with a line about it.
    pub fn register(name: impl Into<Name>, about: &'static str) -> Result<Self, NameTaken> {
        let name = name.into();
        if Self::ALL.iter().any(|ours| ours.name() == name) {
            return Err(NameTaken::new("implementation", name));
        }
        OTHERS.add(name, about)?;
        Ok(Self::Other(name))
    }

    /// One by the name that a record has: that of a program which knew others is taken as it is.
    pub fn recorded(name: &str) -> Self {
        name.parse().unwrap_or_else(|_| Self::Other(name.to_owned().into()))
    }

    /// Reads one as [`Implementation::recorded`] takes it.
    pub fn read_recorded<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::recorded(&<std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(from)?))
    }

    /// Its name.
    pub const fn name(self) -> Name {
        match self {
            Self::Eager => Name::new("eager"),
            Self::Fused => Name::new("fused"),
            Self::Cube => Name::new("cube"),
            Self::Native => Name::new("native"),
            Self::Other(name) => name,
        }
    }

    /// What it is, in one line.
    pub fn about(self) -> &'static str {
        match self {
            Self::Eager => "burn, every operation a kernel of its own",
            Self::Fused => "burn with operations fused into fewer kernels: the counterpart of a compiled model",
            Self::Cube => "portable CubeCL kernels inside the burn model",
            Self::Native => "cuBLASLt and CUDA C++ on a stream of their own",
            Self::Other(name) => OTHERS.find(name.as_str()).unwrap_or("registered by another crate"),
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
        // Of a journal's lines nearly all name one of ours: no list is made for them.
        if let Some(ours) = Self::ALL.into_iter().find(|ours| ours.name() == name) {
            return Ok(ours);
        }
        let known = Self::known();
        let found = known.iter().find(|implementation| implementation.name().as_str() == name).copied();
        found.ok_or_else(|| UnknownName::new("implementation", name, known.iter().map(ToString::to_string)))
    }
}

crate::written_as_a_name!(
    Implementation,
    "Implementation",
    "whose kernels run: eager, fused, cube or native",
    Implementation::known().iter().map(ToString::to_string).collect()
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_may_name_one_that_is_not_known_here() {
        let case = serde_json::json!({
            "id": "x", "mode": "foreign", "workload": "add", "recipe": "baseline", "implementation": "old.so", "device": "cpu",
            "dtype": "u8", "shape_name": "", "shape": {}, "regime": "device-hot",
        });
        let case: crate::Case = serde_json::from_value(case).unwrap();
        assert_eq!(case.implementation, Implementation::Other("old.so".into()));
        assert_eq!(serde_json::to_value(&case).unwrap()["implementation"], "old.so");
        assert_eq!(Implementation::recorded("native"), Implementation::Native);
    }

    #[test]
    fn a_registered_one_is_read_back_and_told_from_ours() {
        let other = Implementation::register("by_hand", "abacus").unwrap();
        assert_eq!("by_hand".parse(), Ok(other));
        assert_eq!((other.to_string(), other.about()), ("by_hand".into(), "abacus"));
        assert_eq!(Implementation::known()[4..], [other]);
        for taken in ["by_hand", "fused"] {
            assert!(Implementation::register(taken, "").is_err(), "{taken}");
        }
        assert!("by_hnd".parse::<Implementation>().unwrap_err().to_string().contains("did you mean \"by_hand\""));
    }
}
