//! Autotuning options: cache mode and level.

use calorimeter_case::{TuningLevel, UnknownName};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Autotuning options, written as comma-separated words that differ from the defaults, such as `quick` or
/// `fresh,quick`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Autotune {
    /// Cache mode of the results.
    pub cache: TuningCacheMode,
    /// Granularity of the tuned sizes.
    pub level: TuningLevel,
}

/// Cache mode of autotuning results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TuningCacheMode {
    /// Tunes kernels that no earlier run on this device has tuned, and stores the results.
    #[default]
    Cached,
    /// Tunes all kernels again, and stores the results in the folder of the run.
    Fresh,
    /// Never tunes; skips cases whose kernels no earlier run has tuned.
    Off,
}

impl TuningCacheMode {
    const ALL: [Self; 3] = [Self::Cached, Self::Fresh, Self::Off];

    fn name(self) -> &'static str {
        match self {
            Self::Cached => "cached",
            Self::Fresh => "fresh",
            Self::Off => "off",
        }
    }
}

impl Autotune {
    /// Cache folder of this level. Levels are separate because a quick result may have been tuned at another size.
    pub fn folder(self) -> &'static str {
        match self.level {
            TuningLevel::Full => "tuning",
            TuningLevel::Quick => "tuning-quick",
        }
    }
}

impl FromStr for Autotune {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut results, mut level) = (None, None);
        for word in text.split(',').map(str::trim) {
            let is_repeated = if let Some(one) = TuningCacheMode::ALL.into_iter().find(|one| one.name() == word) {
                results.replace(one).is_some()
            } else if let Some(one) = TuningLevel::ALL.into_iter().find(|one| one.name() == word) {
                level.replace(one).is_some()
            } else {
                let words = TuningCacheMode::ALL.map(TuningCacheMode::name).into_iter();
                let words = words.chain(TuningLevel::ALL.map(TuningLevel::name));
                return Err(UnknownName::new("autotune option", word, words).to_string());
            };
            if is_repeated {
                return Err(format!(
                    "conflicting autotune options {text:?}: expected one of cached, fresh, off and one of full, quick"
                ));
            }
        }
        Ok(Self { cache: results.unwrap_or_default(), level: level.unwrap_or_default() })
    }
}

impl fmt::Display for Autotune {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.cache.name())?;
        if self.level == TuningLevel::default() { Ok(()) } else { write!(f, ",{}", self.level) }
    }
}

impl From<Autotune> for String {
    fn from(autotune: Autotune) -> Self {
        autotune.to_string()
    }
}

impl TryFrom<String> for Autotune {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_parse_and_missing_ones_default() {
        use TuningCacheMode::{Cached, Fresh, Off};
        use TuningLevel::{Full, Quick};
        for (text, cache, level, written) in [
            ("cached", Cached, Full, "cached"),
            ("quick", Cached, Quick, "cached,quick"),
            ("fresh, quick", Fresh, Quick, "fresh,quick"),
            ("full,off", Off, Full, "off"),
        ] {
            let autotune: Autotune = text.parse().unwrap();
            assert_eq!((autotune, autotune.to_string().as_str()), (Autotune { cache, level }, written), "{text}");
            assert_eq!(written.parse(), Ok(autotune));
        }
        assert!("fresh,cached".parse::<Autotune>().unwrap_err().contains("\"fresh,cached\""));
        assert!("quik".parse::<Autotune>().unwrap_err().contains("quick"));
    }
}
