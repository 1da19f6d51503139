//! Whose kernels run.

use crate::UnknownName;
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
}

impl Implementation {
    /// Every implementation, in the order they are shown.
    pub const ALL: [Self; 4] = [Self::Eager, Self::Fused, Self::Cube, Self::Native];

    /// `eager`, `fused`, `cube` or `native`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eager => "eager",
            Self::Fused => "fused",
            Self::Cube => "cube",
            Self::Native => "native",
        }
    }

    /// What it is, in one line.
    pub fn about(self) -> &'static str {
        match self {
            Self::Eager => "burn, every operation a kernel of its own",
            Self::Fused => "burn with operations fused into fewer kernels: the counterpart of a compiled model",
            Self::Cube => "portable CubeCL kernels inside the burn model",
            Self::Native => "cuBLASLt and CUDA C++ on a stream of their own",
        }
    }
}

impl fmt::Display for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Implementation {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|implementation| implementation.to_string() == name);
        found.ok_or_else(|| UnknownName::new("implementation", name, Self::ALL.map(|known| known.to_string())))
    }
}

crate::written_as_a_name!(
    Implementation,
    "Implementation",
    "whose kernels run: eager, fused, cube or native",
    Implementation::ALL.iter().map(ToString::to_string).collect()
);
