//! Buffer contents: words that differ between neighbors and between buffer sets.

use super::ProbeError;
use rayon::prelude::*;
use std::ops::Range;

/// Content of an output before a check.
pub(super) const POISON: u32 = u32::MAX;

/// Returns a word of the input of a buffer set.
pub(super) fn word(set: u32, index: usize) -> u32 {
    // The upper half of a multiple of the golden ratio: a change of either argument flips about half of the bits.
    let position = (u64::from(set) << 40) ^ (index as u64 + 1);
    (position.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

/// Returns the sum of a range of input words of a buffer set.
pub(super) fn sum(set: u32, words: Range<usize>) -> u32 {
    words.into_par_iter().map(|index| word(set, index)).reduce(|| 0, u32::wrapping_add)
}

/// Allocates host memory that is first touched by the threads that will process it.
pub(super) fn fill_words(words: usize, value: impl Fn(usize) -> u32 + Sync + Send) -> Result<Vec<u32>, ProbeError> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(words).map_err(|_| ProbeError::OutOfHostMemory { bytes: 4 * words as u64 })?;
    (0..words).into_par_iter().map(value).collect_into_vec(&mut memory);
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_words_and_sets_differ() {
        let set = |set| fill_words(1000, |index| word(set, index)).unwrap();
        let (first, second) = (set(0), set(1));
        assert!(first.iter().zip(&second).all(|(a, b)| a != b));
        assert!(first.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(!first.contains(&POISON));
        assert_ne!(sum(0, 0..1000), sum(1, 0..1000));
    }

    #[test]
    fn partial_sums_add_to_the_total() {
        let parts = sum(7, 0..300).wrapping_add(sum(7, 300..1000));
        assert_eq!(parts, sum(7, 0..1000));
        assert_eq!(parts, (0..1000).fold(0u32, |sum, index| sum.wrapping_add(word(7, index))));
    }
}
