//! What a probe computes: its input, its results and its traffic.

use super::{ProbeError, chain, pattern};

/// Bytes of the widest access there is; every buffer is whole accesses.
pub(crate) const ACCESS: usize = 16;
/// Words that a read adds up to one result.
pub(crate) const WORDS_PER_SUM: usize = 8192;

/// A computation whose results are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Spin { steps: u64 },
    Copy { words: usize },
    Read { words: usize },
}

impl Task {
    /// A copy on a device whose buffers hold up to `limit` bytes.
    pub(super) fn copy(bytes: u64, limit: u64) -> Result<Self, ProbeError> {
        Ok(Self::Copy { words: words_in(bytes, limit)? })
    }

    /// A read on a device whose buffers hold up to `limit` bytes.
    pub(super) fn read(bytes: u64, limit: u64) -> Result<Self, ProbeError> {
        Ok(Self::Read { words: words_in(bytes, limit)? })
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
            Self::Copy { words } | Self::Read { words } => pattern::filled(words, |index| pattern::word(set, index)),
        }
    }

    /// Words of output.
    pub(super) fn results(self) -> usize {
        match self {
            Self::Spin { .. } => 1,
            Self::Copy { words } => words,
            Self::Read { words } => words.div_ceil(WORDS_PER_SUM),
        }
    }

    /// One word of output.
    pub(super) fn result(self, set: u32, index: usize) -> u32 {
        match self {
            Self::Spin { steps } => chain::after(chain::SEED, steps),
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

fn words_in(bytes: u64, limit: u64) -> Result<usize, ProbeError> {
    let refused = || ProbeError::BufferSize { bytes, limit };
    let whole = bytes > 0 && bytes.is_multiple_of(ACCESS as u64) && bytes <= limit;
    Ok(usize::try_from(bytes).ok().filter(|_| whole).ok_or_else(refused)? / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_counts_both_directions_of_a_copy_and_one_of_a_read() {
        let traffic = [Task::copy(4096, 4096), Task::read(4096, 4096)].map(|task| task.unwrap().bytes());
        assert_eq!(traffic, [8192, 4096]);
        assert_eq!(Task::Spin { steps: 9 }.bytes(), 0);
    }

    #[test]
    fn buffers_are_whole_accesses_within_the_limit() {
        assert_eq!(Task::copy(32, 32), Ok(Task::Copy { words: 8 }));
        for (bytes, limit) in [(0, 64), (24, 64), (80, 64)] {
            assert_eq!(Task::read(bytes, limit), Err(ProbeError::BufferSize { bytes, limit }));
        }
    }

    #[test]
    fn the_last_sum_of_a_read_takes_what_is_left() {
        let task = Task::Read { words: WORDS_PER_SUM + 4 };
        assert_eq!(task.results(), 2);
        let last = (0..4).fold(0u32, |sum, i| sum.wrapping_add(pattern::word(5, WORDS_PER_SUM + i)));
        assert_eq!(task.result(5, 1), last);
    }
}
