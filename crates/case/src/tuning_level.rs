//! Granularity of autotuning.

use crate::UnknownName;
use std::{fmt, str::FromStr};

/// Granularity of autotuning over problem sizes. Times at different levels come from different kernel choices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TuningLevel {
    /// Every size is tuned separately.
    #[default]
    Full,
    /// Sizes within a factor of 2.5 share the choice tuned for the first of them.
    Quick,
}

impl TuningLevel {
    /// All levels, the default first.
    pub const ALL: [Self; 2] = [Self::Full, Self::Quick];

    /// Name of the level.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Quick => "quick",
        }
    }
}

impl fmt::Display for TuningLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TuningLevel {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|level| level.name() == name);
        found.ok_or_else(|| UnknownName::new("autotune level", name, Self::ALL.map(Self::name)))
    }
}

crate::serde_by_name!(TuningLevel, "full or quick");
