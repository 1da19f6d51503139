//! The parts of a calibration.

use std::fmt;

/// A part of a calibration's plan. Its word is the name of its entries, so that the cases in a journal say what they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Large arrays copied and added.
    Stream,
    /// Copies from what every cache holds to what none does.
    Cache,
    /// The smallest launches.
    Latency,
    /// Products of vectors and matrices.
    Blas,
    /// Patterns beside their own kernels run one by one.
    Fusion,
    /// Copies between host and device.
    Transfer,
}

impl Part {
    const ALL: [Self; 6] = [Self::Stream, Self::Cache, Self::Latency, Self::Blas, Self::Fusion, Self::Transfer];

    /// The part of a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.word() == word)
    }

    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Cache => "cache",
            Self::Latency => "latency",
            Self::Blas => "blas",
            Self::Fusion => "fusion",
            Self::Transfer => "transfer",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}
