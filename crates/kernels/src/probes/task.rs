//! Computation of a probe: input, results and traffic.

use super::{ProbeError, chain, pattern};

/// Bytes of the widest access; buffer sizes are multiples of it.
pub(crate) const ACCESS: usize = 16;
/// Words that a read reduces to one result.
pub(crate) const WORDS_PER_SUM: usize = 8192;

/// Computation with known results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeTask {
    Spin { steps: u64 },
    Copy { words: usize },
    Read { words: usize },
}

impl ProbeTask {
    /// Creates a copy for a device with buffers of up to `limit` bytes.
    pub(super) fn copy(bytes: u64, limit: u64) -> Result<Self, ProbeError> {
        Ok(Self::Copy { words: word_count(bytes, limit)? })
    }

    /// Creates a read for a device with buffers of up to `limit` bytes.
    pub(super) fn read(bytes: u64, limit: u64) -> Result<Self, ProbeError> {
        Ok(Self::Read { words: word_count(bytes, limit)? })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Spin { .. } => "spin",
            Self::Copy { .. } => "copy",
            Self::Read { .. } => "read",
        }
    }

    pub(super) fn input(self, set: u32) -> Result<Vec<u32>, ProbeError> {
        match self {
            Self::Spin { .. } => Ok(vec![chain::SEED]),
            Self::Copy { words } | Self::Read { words } => {
                pattern::fill_words(words, |index| pattern::word(set, index))
            }
        }
    }

    /// Words of the output.
    pub(super) fn results(self) -> usize {
        match self {
            Self::Spin { .. } => 1,
            Self::Copy { words } => words,
            Self::Read { words } => words.div_ceil(WORDS_PER_SUM),
        }
    }

    /// Expected word of the output.
    pub(super) fn result(self, set: u32, index: usize) -> u32 {
        match self {
            Self::Spin { steps } => chain::chain_value(chain::SEED, steps),
            Self::Copy { .. } => pattern::word(set, index),
            Self::Read { words } => pattern::sum(set, index * WORDS_PER_SUM..words.min((index + 1) * WORDS_PER_SUM)),
        }
    }

    /// See [`super::Probe::bytes`].
    pub(super) fn bytes(self) -> u64 {
        match self {
            Self::Spin { .. } => 0,
            Self::Copy { words } => 2 * 4 * words as u64,
            Self::Read { words } => 4 * words as u64,
        }
    }
}

fn word_count(bytes: u64, limit: u64) -> Result<usize, ProbeError> {
    let refused = || ProbeError::BufferSize { bytes, limit };
    let whole = bytes > 0 && bytes.is_multiple_of(ACCESS as u64) && bytes <= limit;
    Ok(usize::try_from(bytes).ok().filter(|_| whole).ok_or_else(refused)? / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_traffic_counts_reads_and_writes() {
        let traffic = [ProbeTask::copy(4096, 4096), ProbeTask::read(4096, 4096)].map(|task| task.unwrap().bytes());
        assert_eq!(traffic, [8192, 4096]);
        assert_eq!(ProbeTask::Spin { steps: 9 }.bytes(), 0);
    }

    #[test]
    fn buffers_hold_whole_accesses_within_the_limit() {
        assert_eq!(ProbeTask::copy(32, 32), Ok(ProbeTask::Copy { words: 8 }));
        for (bytes, limit) in [(0, 64), (24, 64), (80, 64)] {
            assert_eq!(ProbeTask::read(bytes, limit), Err(ProbeError::BufferSize { bytes, limit }));
        }
    }

    #[test]
    fn last_sum_covers_the_remainder() {
        let task = ProbeTask::Read { words: WORDS_PER_SUM + 4 };
        assert_eq!(task.results(), 2);
        let last = (0..4).fold(0u32, |sum, i| sum.wrapping_add(pattern::word(5, WORDS_PER_SUM + i)));
        assert_eq!(task.result(5, 1), last);
    }
}
