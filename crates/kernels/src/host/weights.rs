//! Rows of a weight as they are stored, and how each is read 128 numbers at a time.

use super::lanes::{Lanes, WIDTH};
use super::numbers::Numbers;

/// Numbers of a row that are read together: the words of 128 codes of four bits fill a vector.
pub const BLOCK: usize = 128;
/// Vectors in a block.
pub const VECTORS: usize = BLOCK / WIDTH;

/// A stored weight of `n` rows of `k` numbers, one for each output.
#[derive(Debug, Clone)]
pub enum Weights {
    /// The numbers, row by row.
    Floats(Numbers),
    /// Signed codes of eight bits.
    Int8(Int8Rows),
    /// Codes of four bits.
    Int4(Int4Rows),
}

/// Signed codes of eight bits, and a scale for each row. A code times the scale is a number.
#[derive(Debug, Clone)]
pub struct Int8Rows {
    /// Four codes in a word, the first in the lowest bits; rows begin at words.
    pub codes: Vec<u32>,
    /// One for each row.
    pub scales: Numbers,
}

/// Unsigned codes of four bits, and a scale and a zero for each group of a row. `(code - 8) * scale + zero` is a number.
#[derive(Debug, Clone)]
pub struct Int4Rows {
    /// Eight codes in a word, the first in the lowest bits; rows begin at words.
    pub codes: Vec<u32>,
    /// One for each group, row by row; the last group of a row may be begun.
    pub scales: Numbers,
    /// The same.
    pub zeros: Numbers,
    /// Numbers in a group: 32, 64, or a multiple of 128.
    pub group: usize,
}

impl Weights {
    /// The bytes they take, codes and scales in whole words.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Floats(numbers) => numbers.bytes(),
            Self::Int8(rows) => 4 * rows.codes.len() + rows.scales.bytes_in_words(),
            Self::Int4(rows) => 4 * rows.codes.len() + rows.scales.bytes_in_words() + rows.zeros.bytes_in_words(),
        }
    }
}

/// Stored rows that lanes can read.
pub trait Rows: Sync {
    /// Whether vector `i` of a block has every eighth number from the `i`th on, and not sixteen neighbors.
    const STRIDED: bool;

    /// A block of a row, without the row's scale; beyond the row's end are numbers that zeros may be multiplied with.
    fn block<L: Lanes>(&self, lanes: L, row: usize, block: usize) -> [L::Floats; VECTORS];

    /// What the row's sums are multiplied with.
    #[inline(always)]
    fn scale(&self, _row: usize) -> f32 {
        1.0
    }
}

/// Rows of f32.
pub struct F32Rows<'a>(pub &'a [f32], pub usize);

impl Rows for F32Rows<'_> {
    const STRIDED: bool = false;

    #[inline(always)]
    fn block<L: Lanes>(&self, lanes: L, row: usize, block: usize) -> [L::Floats; VECTORS] {
        let mut spare = [0.0; BLOCK];
        let numbers = piece(&self.0[row * self.1..][..self.1], block, &mut spare);
        let mut floats = [lanes.splat(0.0); VECTORS];
        for (floats, numbers) in floats.iter_mut().zip(numbers.as_chunks::<WIDTH>().0) {
            *floats = lanes.load(numbers);
        }
        floats
    }
}

/// Rows of bf16.
pub struct Bf16Rows<'a>(pub &'a [u16], pub usize);

impl Rows for Bf16Rows<'_> {
    const STRIDED: bool = false;

    #[inline(always)]
    fn block<L: Lanes>(&self, lanes: L, row: usize, block: usize) -> [L::Floats; VECTORS] {
        let mut spare = [0; BLOCK];
        let numbers = piece(&self.0[row * self.1..][..self.1], block, &mut spare);
        let mut floats = [lanes.splat(0.0); VECTORS];
        for (floats, numbers) in floats.iter_mut().zip(numbers.as_chunks::<WIDTH>().0) {
            *floats = lanes.load_bf16(numbers);
        }
        floats
    }
}

/// The second is how many words a row has.
pub struct Int8View<'a>(pub &'a Int8Rows, pub usize);

impl Rows for Int8View<'_> {
    const STRIDED: bool = false;

    #[inline(always)]
    fn block<L: Lanes>(&self, lanes: L, row: usize, block: usize) -> [L::Floats; VECTORS] {
        let mut spare = [0; BLOCK / 4];
        let words = piece(&self.0.codes[row * self.1..][..self.1], block, &mut spare);
        let mut floats = [lanes.splat(0.0); VECTORS];
        for (floats, words) in floats.iter_mut().zip(words.as_chunks::<4>().0) {
            *floats = lanes.load_i8(words);
        }
        floats
    }

    #[inline(always)]
    fn scale(&self, row: usize) -> f32 {
        self.0.scales.at(row)
    }
}

/// The second is how many words a row has, the third how many groups.
pub struct Int4View<'a>(pub &'a Int4Rows, pub usize, pub usize);

impl Rows for Int4View<'_> {
    // Each word has eight neighbors, and each vector one code of every word.
    const STRIDED: bool = true;

    #[inline(always)]
    fn block<L: Lanes>(&self, lanes: L, row: usize, block: usize) -> [L::Floats; VECTORS] {
        let Int4Rows { codes, scales, zeros, group } = self.0;
        let mut spare = [0; BLOCK / 8];
        let words = lanes.words(piece(&codes[row * self.1..][..self.1], block, &mut spare));
        let first = row * self.2 + block * BLOCK / group;
        let (scale, zero) = if *group >= BLOCK {
            (lanes.splat(scales.at(first)), lanes.splat(zeros.at(first)))
        } else {
            let last = (row + 1) * self.2 - 1;
            let (mut four_scales, mut four_zeros) = ([0.0; 4], [0.0; 4]);
            for (quarter, (scale, zero)) in four_scales.iter_mut().zip(&mut four_zeros).enumerate() {
                let at = (first + quarter * (BLOCK / 4) / group).min(last);
                (*scale, *zero) = (scales.at(at), zeros.at(at));
            }
            (lanes.quarters(four_scales), lanes.quarters(four_zeros))
        };
        let mut floats = [zero; VECTORS];
        for (below, floats) in floats.iter_mut().enumerate() {
            *floats = lanes.multiply_add(lanes.nibbles(words, below as u32), scale, zero);
        }
        floats
    }
}

/// A block of a row, filled up with zeros in the spare one where the row ends.
#[inline(always)]
fn piece<'a, T: Copy, const N: usize>(row: &'a [T], block: usize, spare: &'a mut [T; N]) -> &'a [T; N] {
    let (whole, rest) = row.as_chunks::<N>();
    if let Some(whole) = whole.get(block) {
        return whole;
    }
    spare[..rest.len()].copy_from_slice(rest);
    spare
}
