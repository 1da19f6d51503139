//! Parts of a calibration plan.

use std::fmt;

/// Part of a calibration plan. Its word is the name of its entries, so that journals record the part of each case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalibrationPart {
    /// STREAM: copies and additions of large arrays.
    Stream,
    /// Copies from below the smallest cache to beyond the largest.
    Cache,
    /// Smallest launches.
    Latency,
    /// Products of vectors and matrices.
    Blas,
    /// Fused patterns, compared with separate kernels.
    Fusion,
    /// Copies between host and device.
    Transfer,
}

impl CalibrationPart {
    const ALL: [Self; 6] = [Self::Stream, Self::Cache, Self::Latency, Self::Blas, Self::Fusion, Self::Transfer];

    /// Parses the word of a part.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.word() == word)
    }

    /// Word in files and ids.
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

impl fmt::Display for CalibrationPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}
