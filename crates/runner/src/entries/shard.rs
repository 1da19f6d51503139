//! Shards: parts of a plan that several machines or jobs measure.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Shard such as `2/8`, the second of eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Shard {
    part: u32,
    total: u32,
}

/// Maximum number of shards of a plan.
const MAX_SHARDS: u32 = 10_000;

impl Shard {
    /// Zero-based index.
    pub fn index(self) -> usize {
        self.part as usize - 1
    }

    /// Number of shards of the plan.
    pub fn parts(self) -> usize {
        self.total as usize
    }

    /// All shards of a plan divided into `parts`.
    pub fn all(parts: usize) -> impl Iterator<Item = Self> {
        let of = parts as u32;
        (1..=of).map(move |part| Self { part, total: of })
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("invalid shard {text:?}: expected e.g. 2/8 for the second of eight");
        let (part, of) = text.split_once('/').ok_or_else(invalid)?;
        let (part, of) = part.parse().ok().zip(of.parse().ok()).ok_or_else(invalid)?;
        if of > MAX_SHARDS {
            return Err(format!("invalid shard {text:?}: expected at most {MAX_SHARDS} parts"));
        }
        if (1..=of).contains(&part) { Ok(Self { part, total: of }) } else { Err(invalid()) }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.total)
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_numbered_from_one() {
        assert_eq!("2/8".parse::<Shard>().map(|shard| (shard.index(), shard.parts())), Ok((1, 8)));
        assert_eq!(Shard::all(2).map(String::from).collect::<Vec<_>>(), ["1/2", "2/2"]);
        for wrong in ["0/8", "9/8", "2", "a/b", "1/0", "1/10001", "-1/2"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
