//! Verdicts on speed-ups.

use crate::UnknownName;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{fmt, str::FromStr};

/// Conclusion from the interval of a speed-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The whole interval is above 1 by more than the margin.
    Faster,
    /// The whole interval is below 1 by more than the margin.
    Slower,
    /// The whole interval is within the margin of 1.
    Same,
    /// Undecided: more rounds or a quieter machine would be needed.
    #[default]
    Unclear,
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Self; 4] = [Self::Faster, Self::Slower, Self::Same, Self::Unclear];

    /// Returns the verdict on an interval, from its position relative to 1 and the margin.
    pub fn from_interval(lo: Option<f64>, hi: Option<f64>, margin: f64) -> Self {
        let (Some(lo), Some(hi)) = (lo, hi) else { return Self::Unclear };
        if lo > 1.0 + margin {
            Self::Faster
        } else if hi < 1.0 / (1.0 + margin) {
            Self::Slower
        } else if lo >= 1.0 / (1.0 + margin) && hi <= 1.0 + margin {
            Self::Same
        } else {
            Self::Unclear
        }
    }

    /// Name in tables and in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Faster => "FASTER",
            Self::Slower => "SLOWER",
            Self::Same => "SAME",
            Self::Unclear => "UNCLEAR",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Verdict {
    type Err = UnknownName;

    fn from_str(word: &str) -> Result<Self, UnknownName> {
        // Name in older journals.
        let word = if word == "INCONCLUSIVE" { Self::Unclear.as_str() } else { word };
        let found = Self::ALL.into_iter().find(|verdict| verdict.as_str() == word);
        found.ok_or_else(|| UnknownName::new("verdict", word, Self::ALL.map(Self::as_str)))
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Verdict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_depends_on_interval_and_margin() {
        for (lo, hi, expected) in [
            (1.03, 1.20, Verdict::Faster),
            (1.01, 1.20, Verdict::Unclear),
            (0.99, 1.01, Verdict::Same),
            (0.981, 1.02, Verdict::Same),
            (0.70, 0.97, Verdict::Slower),
            (0.90, 1.10, Verdict::Unclear),
        ] {
            assert_eq!(Verdict::from_interval(Some(lo), Some(hi), 0.02), expected, "{lo}..{hi}");
        }
        assert_eq!(Verdict::from_interval(None, None, 0.02), Verdict::Unclear);
    }

    #[test]
    fn inconclusive_is_read_as_unclear() {
        for verdict in Verdict::ALL {
            let json = serde_json::to_string(&verdict).unwrap();
            assert_eq!(json, format!("\"{verdict}\""));
            assert_eq!(serde_json::from_str::<Verdict>(&json).unwrap(), verdict);
        }
        assert_eq!("INCONCLUSIVE".parse(), Ok(Verdict::Unclear));
        assert!("faster".parse::<Verdict>().is_err());
    }
}
