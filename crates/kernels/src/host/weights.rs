//! Stored weights, and dequantization of their rows in blocks of 128.

use super::float_simd::{FloatSimd, WIDTH};
use super::float_vec::FloatVec;

/// Elements of a block: the words of 128 4-bit values fill a vector.
pub const BLOCK: usize = 128;
/// Vectors per block.
pub const VECTORS: usize = BLOCK / WIDTH;

/// Stored weight of `n` rows of `k` elements.
#[derive(Debug, Clone)]
pub enum HostGemmWeight {
    /// Floats, row by row.
    Floats(FloatVec),
    /// int8 values.
    Int8(Int8Weight),
    /// 4-bit values.
    Int4(Int4Weight),
}

/// int8 weight with one scale per row: an element is value * scale.
#[derive(Debug, Clone)]
pub struct Int8Weight {
    /// Four values per word, the first in the lowest bits; rows begin at words.
    pub codes: Vec<u32>,
    /// Scale per row.
    pub scales: FloatVec,
}

/// uint4 weight with a scale and a zero point per group: an element is `(value - 8) * scale + zero`.
#[derive(Debug, Clone)]
pub struct Int4Weight {
    /// Eight values per word, the first in the lowest bits; rows begin at words.
    pub codes: Vec<u32>,
    /// Scale per group, row by row; the last group of a row may be incomplete.
    pub scales: FloatVec,
    /// Zero point per group, in the order of the scales.
    pub zeros: FloatVec,
    /// Group size: 32, 64, or a multiple of 128.
    pub group: usize,
}

impl HostGemmWeight {
    /// Size in bytes, with values and scales in whole words.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Floats(numbers) => numbers.bytes(),
            Self::Int8(rows) => 4 * rows.codes.len() + rows.scales.bytes_in_words(),
            Self::Int4(rows) => 4 * rows.codes.len() + rows.scales.bytes_in_words() + rows.zeros.bytes_in_words(),
        }
    }
}

/// Dequantization of weight rows.
pub trait WeightRows: Sync {
    /// True if vector `i` of a block holds every eighth element from the `i`th on, instead of sixteen adjacent ones.
    const STRIDED: bool;

    /// Returns a block of a row without the row scale. Elements beyond the end of the row are finite.
    fn block<L: FloatSimd>(&self, lanes: L, row: usize, block: usize) -> [L::Floats; VECTORS];

    /// Scale of a row, applied to the accumulator.
    #[inline(always)]
    fn scale(&self, _row: usize) -> f32 {
        1.0
    }
}

/// f32 rows, with the row length.
pub struct F32Rows<'a>(pub &'a [f32], pub usize);

impl WeightRows for F32Rows<'_> {
    const STRIDED: bool = false;

    #[inline(always)]
    fn block<L: FloatSimd>(&self, lanes: L, row: usize, block: usize) -> [L::Floats; VECTORS] {
        let mut spare = [0.0; BLOCK];
        let numbers = padded_block(&self.0[row * self.1..][..self.1], block, &mut spare);
        let mut floats = [lanes.splat(0.0); VECTORS];
        for (floats, numbers) in floats.iter_mut().zip(numbers.as_chunks::<WIDTH>().0) {
            *floats = lanes.load(numbers);
        }
        floats
    }
}

/// bf16 rows, with the row length.
pub struct Bf16Rows<'a>(pub &'a [u16], pub usize);

impl WeightRows for Bf16Rows<'_> {
    const STRIDED: bool = false;

    #[inline(always)]
    fn block<L: FloatSimd>(&self, lanes: L, row: usize, block: usize) -> [L::Floats; VECTORS] {
        let mut spare = [0; BLOCK];
        let numbers = padded_block(&self.0[row * self.1..][..self.1], block, &mut spare);
        let mut floats = [lanes.splat(0.0); VECTORS];
        for (floats, numbers) in floats.iter_mut().zip(numbers.as_chunks::<WIDTH>().0) {
            *floats = lanes.load_bf16(numbers);
        }
        floats
    }
}

/// int8 rows, with the words per row.
pub struct Int8WeightRows<'a>(pub &'a Int8Weight, pub usize);

impl WeightRows for Int8WeightRows<'_> {
    const STRIDED: bool = false;

    #[inline(always)]
    fn block<L: FloatSimd>(&self, lanes: L, row: usize, block: usize) -> [L::Floats; VECTORS] {
        let mut spare = [0; BLOCK / 4];
        let words = padded_block(&self.0.codes[row * self.1..][..self.1], block, &mut spare);
        let mut floats = [lanes.splat(0.0); VECTORS];
        for (floats, words) in floats.iter_mut().zip(words.as_chunks::<4>().0) {
            *floats = lanes.load_i8(words);
        }
        floats
    }

    #[inline(always)]
    fn scale(&self, row: usize) -> f32 {
        self.0.scales.get(row)
    }
}

/// uint4 rows, with the words and the groups per row.
pub struct Int4WeightRows<'a>(pub &'a Int4Weight, pub usize, pub usize);

impl WeightRows for Int4WeightRows<'_> {
    // A word holds eight adjacent values, and a vector one value of every word.
    const STRIDED: bool = true;

    #[inline(always)]
    fn block<L: FloatSimd>(&self, lanes: L, row: usize, block: usize) -> [L::Floats; VECTORS] {
        let Int4Weight { codes, scales, zeros, group } = self.0;
        let mut spare = [0; BLOCK / 8];
        let words = lanes.words(padded_block(&codes[row * self.1..][..self.1], block, &mut spare));
        let first = row * self.2 + block * BLOCK / group;
        let (scale, zero) = if *group >= BLOCK {
            (lanes.splat(scales.get(first)), lanes.splat(zeros.get(first)))
        } else {
            let last = (row + 1) * self.2 - 1;
            let (mut four_scales, mut four_zeros) = ([0.0; 4], [0.0; 4]);
            for (quarter, (scale, zero)) in four_scales.iter_mut().zip(&mut four_zeros).enumerate() {
                let at = (first + quarter * (BLOCK / 4) / group).min(last);
                (*scale, *zero) = (scales.get(at), zeros.get(at));
            }
            (lanes.splat_quarters(four_scales), lanes.splat_quarters(four_zeros))
        };
        let mut floats = [zero; VECTORS];
        for (below, floats) in floats.iter_mut().enumerate() {
            *floats = lanes.multiply_add(lanes.nibbles(words, below as u32), scale, zero);
        }
        floats
    }
}

/// Returns a block of a row; at the end of the row, a copy in `spare` that is padded with zeros.
#[inline(always)]
fn padded_block<'a, T: Copy, const N: usize>(row: &'a [T], block: usize, spare: &'a mut [T; N]) -> &'a [T; N] {
    let (whole, rest) = row.as_chunks::<N>();
    if let Some(whole) = whole.get(block) {
        return whole;
    }
    spare[..rest.len()].copy_from_slice(rest);
    spare
}
