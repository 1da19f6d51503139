//! How finely a runtime's tuner tells sizes apart.

use crate::UnknownName;
use std::{fmt, str::FromStr};

/// How finely a runtime's tuner tells sizes apart. Times under two levels are of different choices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TuningLevel {
    /// Every size is tuned by itself.
    #[default]
    Full,
    /// Sizes within a factor of 2.5 of one another share what was tuned for the first of them.
    Quick,
}

impl TuningLevel {
    /// Every level, the default first.
    pub const ALL: [Self; 2] = [Self::Full, Self::Quick];

    /// Its name.
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
        found.ok_or_else(|| UnknownName::new("level of tuning", name, Self::ALL.map(Self::name)))
    }
}

crate::serde_by_name!(TuningLevel, "full or quick");
