//! What a speed-up's interval allows one to say.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{fmt, str::FromStr};

/// What a speed-up's interval allows one to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The whole interval lies above 1 by more than the margin.
    Faster,
    /// The whole interval lies below 1 by more than the margin.
    Slower,
    /// The whole interval lies within the margin of 1.
    Same,
    /// None of these: more rounds, or a quieter machine, would be needed.
    Unclear,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 4] = [Self::Faster, Self::Slower, Self::Same, Self::Unclear];

    /// The verdict on an interval: where it lies beside 1, give or take the margin.
    pub fn of(lo: Option<f64>, hi: Option<f64>, margin: f64) -> Self {
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

    fn word(self) -> &'static str {
        match self {
            Self::Faster => "FASTER",
            Self::Slower => "SLOWER",
            Self::Same => "SAME",
            Self::Unclear => "UNCLEAR",
        }
    }
}

/// A word that is no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no verdict; there are FASTER, SLOWER, SAME and UNCLEAR")]
pub struct UnknownVerdict(pub String);

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Verdict {
    type Err = UnknownVerdict;

    fn from_str(word: &str) -> Result<Self, UnknownVerdict> {
        // What older journals call it.
        let word = if word == "INCONCLUSIVE" { Self::Unclear.word() } else { word };
        Self::ALL.into_iter().find(|verdict| verdict.word() == word).ok_or_else(|| UnknownVerdict(word.to_owned()))
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
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
    fn verdicts_follow_the_interval_and_the_margin() {
        for (lo, hi, expected) in [
            (1.03, 1.20, Verdict::Faster),
            (1.01, 1.20, Verdict::Unclear),
            (0.99, 1.01, Verdict::Same),
            (0.981, 1.02, Verdict::Same),
            (0.70, 0.97, Verdict::Slower),
            (0.90, 1.10, Verdict::Unclear),
        ] {
            assert_eq!(Verdict::of(Some(lo), Some(hi), 0.02), expected, "{lo}..{hi}");
        }
        assert_eq!(Verdict::of(None, None, 0.02), Verdict::Unclear);
    }

    #[test]
    fn one_word_is_written_and_the_old_one_still_read() {
        for verdict in Verdict::ALL {
            let json = serde_json::to_string(&verdict).unwrap();
            assert_eq!(json, format!("\"{verdict}\""));
            assert_eq!(serde_json::from_str::<Verdict>(&json).unwrap(), verdict);
        }
        assert_eq!("INCONCLUSIVE".parse(), Ok(Verdict::Unclear));
        assert_eq!("faster".parse::<Verdict>(), Err(UnknownVerdict("faster".into())));
    }
}
