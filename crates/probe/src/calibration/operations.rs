//! Operations that can be calibrated: words of `--operations`, and their operators.

use super::part::CalibrationPart;
use std::str::FromStr;

/// Calibrated operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalibrationOperation {
    /// Copy of an array.
    StreamCopy,
    /// Product of an array and a number.
    StreamScale,
    /// Sum of two arrays.
    StreamAdd,
    /// Sum of an array and a scaled array.
    StreamTriad,
    /// Dot product.
    Dot,
    /// Sum of a vector and a scaled vector.
    Axpy,
    /// Product of a matrix and a vector.
    Gemv,
    /// Matmul at the sizes of BLAS.
    Gemm,
    /// Matmul at the sizes of the device.
    Matmul,
    /// Copies of growing arrays, which show the cache levels.
    Cache,
    /// Smallest launch.
    Latency,
    /// Copies between host and device.
    Transfer,
}

use CalibrationOperation::*;

const STREAM: &[CalibrationOperation] = &[StreamCopy, StreamScale, StreamAdd, StreamTriad];

const OPERATION_WORDS: &[(&str, &[CalibrationOperation])] = &[
    ("matmul", &[Matmul]),
    ("memory", STREAM),
    ("stream", STREAM),
    ("stream_copy", &[StreamCopy]),
    ("stream_scale", &[StreamScale]),
    ("stream_add", &[StreamAdd]),
    ("stream_triad", &[StreamTriad]),
    ("blas", &[Dot, Axpy, Gemv, Gemm]),
    ("blas1", &[Dot, Axpy]),
    ("blas2", &[Gemv]),
    ("blas3", &[Gemm]),
    ("dot", &[Dot]),
    ("axpy", &[Axpy]),
    ("gemv", &[Gemv]),
    ("gemm", &[Gemm]),
    ("cache", &[Cache]),
    ("latency", &[Latency]),
    ("transfer", &[Transfer]),
];

impl CalibrationOperation {
    /// All operations, in measuring order.
    pub const ALL: [Self; 12] =
        [StreamCopy, StreamScale, StreamAdd, StreamTriad, Cache, Latency, Dot, Axpy, Gemv, Gemm, Matmul, Transfer];

    /// Returns the operation of `part` that uses `operator`.
    pub fn by_operator(part: CalibrationPart, operator: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.part() == part && one.operators().contains(&operator))
    }

    /// Part of the plan to which it belongs.
    pub fn part(self) -> CalibrationPart {
        match self {
            StreamCopy | StreamScale | StreamAdd | StreamTriad => CalibrationPart::Stream,
            Cache => CalibrationPart::Cache,
            Latency => CalibrationPart::Latency,
            Dot | Axpy | Gemv | Gemm | Matmul => CalibrationPart::Blas,
            Transfer => CalibrationPart::Transfer,
        }
    }

    /// Operators that measure it.
    pub fn operators(self) -> &'static [&'static str] {
        match self {
            StreamCopy | Cache => &["stream_copy"],
            StreamScale => &["stream_scale"],
            StreamAdd | Latency => &["stream_add"],
            StreamTriad => &["stream_triad"],
            Dot => &["dot"],
            Axpy => &["axpy"],
            Gemv => &["gemv"],
            Gemm | Matmul => &["matmul"],
            Transfer => &[
                "host_to_device",
                "device_to_host",
                "host_device_both",
                "pageable_host_to_device",
                "pageable_device_to_host",
                "pageable_host_device_both",
            ],
        }
    }
}

/// Default operations.
pub fn all_operations() -> Vec<CalibrationOperation> {
    CalibrationOperation::ALL.into()
}

/// Reason for missing transfers in a profile.
pub(super) const TRANSFER_NOT_MEASURED: &str =
    "copies between host and device are measured on CUDA only, with --operations transfer";

/// Operations denoted by one word of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operations(pub &'static [CalibrationOperation]);

impl Operations {
    /// All accepted words.
    pub fn words() -> impl Iterator<Item = &'static str> {
        OPERATION_WORDS.iter().map(|(word, _)| *word)
    }
}

impl FromStr for Operations {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        look_up(OPERATION_WORDS, word).map(Self).ok_or_else(|| unknown_word_error("operation", word, OPERATION_WORDS))
    }
}

/// Looks up a word in a table.
pub(super) fn look_up<T: Copy>(words: &[(&str, T)], word: &str) -> Option<T> {
    words.iter().find(|(known, _)| *known == word).map(|(_, value)| *value)
}

/// Error message for an unknown word.
pub(super) fn unknown_word_error<T>(kind: &str, word: &str, words: &[(&str, T)]) -> String {
    let known: Vec<&str> = words.iter().map(|(known, _)| *known).collect();
    format!("unknown {kind} {word:?}; known: {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_words_parse_and_unknown_ones_are_refused() {
        for (word, count) in [("memory", 4), ("blas", 4), ("blas1", 2), ("gemm", 1), ("transfer", 1)] {
            assert_eq!(word.parse::<Operations>().unwrap().0.len(), count, "{word}");
        }
        let error = "blas4".parse::<Operations>().unwrap_err();
        assert!(error.starts_with("unknown operation \"blas4\"; known: matmul, memory, stream"), "{error}");
    }
}
