//! Whether kernels are tuned, how finely, and what becomes of the results.

use calorimeter_case::{TuningLevel, UnknownName};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Whether kernels are tuned, how finely, and what becomes of the results: a word for each that is not as usual, such as
/// `quick` or `fresh,quick`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Autotune {
    /// What becomes of the results.
    pub results: TuningResults,
    /// How finely sizes are told apart.
    pub level: TuningLevel,
}

/// What becomes of what was tuned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TuningResults {
    /// What no earlier run on this device has tuned is tuned, and kept for later ones.
    #[default]
    Cached,
    /// Everything is tuned anew, into the run's own folder.
    Fresh,
    /// Nothing is tuned: a case whose kernels no earlier run has tuned is skipped.
    Off,
}

impl TuningResults {
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
    /// The folder of what is tuned at this level: a choice made for another size is no choice of the full level.
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
            let twice = if let Some(one) = TuningResults::ALL.into_iter().find(|one| one.name() == word) {
                results.replace(one).is_some()
            } else if let Some(one) = TuningLevel::ALL.into_iter().find(|one| one.name() == word) {
                level.replace(one).is_some()
            } else {
                let words = TuningResults::ALL.map(TuningResults::name).into_iter();
                let words = words.chain(TuningLevel::ALL.map(TuningLevel::name));
                return Err(UnknownName::new("word for tuning", word, words).to_string());
            };
            if twice {
                return Err(format!(
                    "{text:?} says two things at once: one of cached, fresh and off, one of full and quick"
                ));
            }
        }
        Ok(Self { results: results.unwrap_or_default(), level: level.unwrap_or_default() })
    }
}

impl fmt::Display for Autotune {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.results.name())?;
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
    fn each_word_says_one_thing_and_what_is_not_said_is_as_usual() {
        use TuningLevel::{Full, Quick};
        use TuningResults::{Cached, Fresh, Off};
        for (text, results, level, written) in [
            ("cached", Cached, Full, "cached"),
            ("quick", Cached, Quick, "cached,quick"),
            ("fresh, quick", Fresh, Quick, "fresh,quick"),
            ("full,off", Off, Full, "off"),
        ] {
            let autotune: Autotune = text.parse().unwrap();
            assert_eq!((autotune, autotune.to_string().as_str()), (Autotune { results, level }, written), "{text}");
            assert_eq!(written.parse(), Ok(autotune));
        }
        assert!("fresh,cached".parse::<Autotune>().unwrap_err().contains("two things at once"));
        assert!("quik".parse::<Autotune>().unwrap_err().contains("quick"));
    }
}
