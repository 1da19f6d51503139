//! Stored weights, and dequantization of their rows in blocks of 128.

use super::float_simd::{FloatSimd, WIDTH};
use super::float_vec::{FloatVec, StoredFloat};
use half::f16;

/// Elements of a block: the words of 128 4-bit values fill a vector.
pub(super) const BLOCK: usize = 128;
/// Vectors per block.
pub(super) const VECTORS: usize = BLOCK / WIDTH;

/// Stored weight of `n` rows of `k` elements.
#[derive(Debug, Clone)]
pub enum HostGemmWeight {
    /// Floats, row by row.
    Floats(FloatVec),
    /// int8 values.
    Int8(Int8Weight),
    /// 4-bit values.
    Int4(Int4Weight),
    /// int8 values in blocks of 32.
    Int8Blocks(BlockWeight),
    /// 4-bit values in blocks of 32.
    Int4Blocks(BlockWeight),
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
    /// Zero point per group, in the order and the dtype of the scales.
    pub zeros: FloatVec,
    /// Group size: a power of two, at least 32.
    pub group: usize,
}

/// Symmetric weight with an f16 scale per 32 elements of a row: an element is `value * scale`.
#[derive(Debug, Clone)]
pub struct BlockWeight {
    /// int8 values, or 4-bit values plus 8, the first in the lowest bits; rows consist of whole blocks.
    pub codes: Vec<u32>,
    /// Finite scale per block, row by row.
    pub scales: Vec<f16>,
}

impl BlockWeight {
    /// Elements that share a scale.
    pub const SIZE: usize = 32;
}

impl HostGemmWeight {
    /// Size in bytes, with values and scales in whole words.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Floats(numbers) => numbers.bytes(),
            Self::Int8(rows) => 4 * rows.codes.len() + rows.scales.bytes_in_words(),
            Self::Int4(rows) => 4 * rows.codes.len() + rows.scales.bytes_in_words() + rows.zeros.bytes_in_words(),
            Self::Int8Blocks(rows) | Self::Int4Blocks(rows) => {
                4 * rows.codes.len() + (2 * rows.scales.len()).next_multiple_of(4)
            }
        }
    }
}

/// Rows of a stored weight.
pub(super) trait WeightRows: Sync {
    /// True if vector `i` of a block holds every eighth element from the `i`th on, instead of sixteen adjacent ones.
    const STRIDED: bool;

    /// Row of the weight.
    type Row<'a>: WeightRow
    where
        Self: 'a;

    /// Returns a row.
    fn row(&self, row: usize) -> Self::Row<'_>;

    /// Scale of a row, applied to the accumulator.
    #[inline(always)]
    fn scale(&self, _row: usize) -> f32 {
        1.0
    }
}

/// Row of a stored weight, in blocks of 128 elements.
pub(super) trait WeightRow: Copy {
    /// Stored values of a block.
    type Block: Copy;

    /// Returns the whole blocks.
    fn whole_blocks(&self) -> &[Self::Block];

    /// Returns the incomplete block at the end of the row, padded with zeros.
    fn last_block(&self) -> Self::Block;

    /// Dequantizes the block at an index, without the row scale. Elements beyond the end of the row are finite.
    fn dequantize<L: FloatSimd>(&self, lanes: L, block: &Self::Block, index: usize) -> [L::Floats; VECTORS];

    /// Dequantizes the block at an index; the last one may be incomplete.
    #[inline(always)]
    fn block<L: FloatSimd>(&self, lanes: L, index: usize) -> [L::Floats; VECTORS] {
        match self.whole_blocks().get(index) {
            Some(block) => self.dequantize(lanes, block, index),
            None => self.dequantize(lanes, &self.last_block(), index),
        }
    }
}

/// Stored values of a row, in blocks of `N` words.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowBlocks<'a, T, const N: usize> {
    whole: &'a [[T; N]],
    rest: &'a [T],
}

impl<'a, T: Copy + Default, const N: usize> RowBlocks<'a, T, N> {
    /// Divides row `row` of rows of `length` words.
    #[inline(always)]
    fn new(words: &'a [T], row: usize, length: usize) -> Self {
        let (whole, rest) = words[row * length..][..length].as_chunks();
        Self { whole, rest }
    }

    #[inline(always)]
    fn padded_rest(&self) -> [T; N] {
        let mut padded = [T::default(); N];
        padded[..self.rest.len()].copy_from_slice(self.rest);
        padded
    }
}

/// Block whose dequantization needs no scale of a group.
pub(super) trait PlainBlock: Copy {
    /// Converts to floats.
    fn to_floats<L: FloatSimd>(&self, lanes: L) -> [L::Floats; VECTORS];
}

impl<T: Copy + Default, const N: usize> WeightRow for RowBlocks<'_, T, N>
where
    [T; N]: PlainBlock,
{
    type Block = [T; N];

    #[inline(always)]
    fn whole_blocks(&self) -> &[[T; N]] {
        self.whole
    }

    #[inline(always)]
    fn last_block(&self) -> [T; N] {
        self.padded_rest()
    }

    #[inline(always)]
    fn dequantize<L: FloatSimd>(&self, lanes: L, block: &[T; N], _: usize) -> [L::Floats; VECTORS] {
        block.to_floats(lanes)
    }
}

impl PlainBlock for [f32; BLOCK] {
    #[inline(always)]
    fn to_floats<L: FloatSimd>(&self, lanes: L) -> [L::Floats; VECTORS] {
        let mut floats = [lanes.splat(0.0); VECTORS];
        for (floats, numbers) in floats.iter_mut().zip(self.as_chunks::<WIDTH>().0) {
            *floats = lanes.load(numbers);
        }
        floats
    }
}

/// bf16 bit patterns.
impl PlainBlock for [u16; BLOCK] {
    #[inline(always)]
    fn to_floats<L: FloatSimd>(&self, lanes: L) -> [L::Floats; VECTORS] {
        let mut floats = [lanes.splat(0.0); VECTORS];
        for (floats, numbers) in floats.iter_mut().zip(self.as_chunks::<WIDTH>().0) {
            *floats = lanes.load_bf16(numbers);
        }
        floats
    }
}

/// Words of a block of int8 values.
const INT8_WORDS: usize = BLOCK / 4;

impl PlainBlock for [u32; INT8_WORDS] {
    #[inline(always)]
    fn to_floats<L: FloatSimd>(&self, lanes: L) -> [L::Floats; VECTORS] {
        let mut floats = [lanes.splat(0.0); VECTORS];
        for (floats, words) in floats.iter_mut().zip(self.as_chunks::<4>().0) {
            *floats = lanes.load_i8(words);
        }
        floats
    }
}

/// f32 or bf16 rows, with the row length.
pub(super) struct FloatRows<'a, T>(pub &'a [T], pub usize);

impl<T: StoredFloat> WeightRows for FloatRows<'_, T>
where
    [T; BLOCK]: PlainBlock,
{
    const STRIDED: bool = false;

    type Row<'a>
        = RowBlocks<'a, T, BLOCK>
    where
        Self: 'a;

    #[inline(always)]
    fn row(&self, row: usize) -> Self::Row<'_> {
        RowBlocks::new(self.0, row, self.1)
    }
}

/// int8 rows, with the words per row.
pub(super) struct Int8WeightRows<'a>(pub &'a Int8Weight, pub usize);

impl WeightRows for Int8WeightRows<'_> {
    const STRIDED: bool = false;

    type Row<'a>
        = RowBlocks<'a, u32, INT8_WORDS>
    where
        Self: 'a;

    #[inline(always)]
    fn row(&self, row: usize) -> Self::Row<'_> {
        RowBlocks::new(&self.0.codes, row, self.1)
    }

    #[inline(always)]
    fn scale(&self, row: usize) -> f32 {
        self.0.scales.get(row)
    }
}

/// Words of a block of 4-bit values.
const INT4_WORDS: usize = BLOCK / 8;

/// uint4 rows with scales and zero points of type `S`. `WHOLE_BLOCKS`: a group consists of whole blocks.
pub(super) struct Int4WeightRows<'a, S, const WHOLE_BLOCKS: bool> {
    codes: &'a [u32],
    scales: &'a [S],
    zeros: &'a [S],
    /// Words and groups per row.
    words: usize,
    groups: usize,
    /// Base-2 logarithm of the blocks per group, or of the groups per block.
    shift: u32,
}

impl<'a, S: StoredFloat, const WHOLE_BLOCKS: bool> Int4WeightRows<'a, S, WHOLE_BLOCKS> {
    /// Views a weight of `n` rows.
    pub(super) fn new(weight: &'a Int4Weight, scales: &'a [S], zeros: &'a [S], n: usize) -> Self {
        let shift = weight.group.ilog2().abs_diff(BLOCK.ilog2());
        Self { codes: &weight.codes, scales, zeros, words: weight.codes.len() / n, groups: scales.len() / n, shift }
    }
}

/// uint4 row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Int4Row<'a, S, const WHOLE_BLOCKS: bool> {
    words: RowBlocks<'a, u32, INT4_WORDS>,
    scales: &'a [S],
    zeros: &'a [S],
    shift: u32,
}

impl<S: StoredFloat, const WHOLE_BLOCKS: bool> WeightRows for Int4WeightRows<'_, S, WHOLE_BLOCKS> {
    // A word holds eight adjacent values, and a vector one value of every word.
    const STRIDED: bool = true;

    type Row<'a>
        = Int4Row<'a, S, WHOLE_BLOCKS>
    where
        Self: 'a;

    #[inline(always)]
    fn row(&self, row: usize) -> Int4Row<'_, S, WHOLE_BLOCKS> {
        let Self { codes, scales, zeros, words, groups, shift } = *self;
        let [scales, zeros] = [scales, zeros].map(|floats| &floats[row * groups..][..groups]);
        Int4Row { words: RowBlocks::new(codes, row, words), scales, zeros, shift }
    }
}

impl<S: StoredFloat, const WHOLE_BLOCKS: bool> WeightRow for Int4Row<'_, S, WHOLE_BLOCKS> {
    type Block = [u32; INT4_WORDS];

    #[inline(always)]
    fn whole_blocks(&self) -> &[[u32; INT4_WORDS]] {
        self.words.whole
    }

    #[inline(always)]
    fn last_block(&self) -> [u32; INT4_WORDS] {
        self.words.padded_rest()
    }

    #[inline(always)]
    fn dequantize<L: FloatSimd>(&self, lanes: L, block: &[u32; INT4_WORDS], index: usize) -> [L::Floats; VECTORS] {
        let words = lanes.words(block);
        let mut floats = [lanes.splat(0.0); VECTORS];
        if WHOLE_BLOCKS {
            let group = index >> self.shift;
            let table = lanes.nibble_table(self.scales[group].to_f32(), self.zeros[group].to_f32());
            for (below, floats) in floats.iter_mut().enumerate() {
                *floats = lanes.look_up_nibbles(words, below as u32, table);
            }
        } else {
            let scales = lanes.splat_quarters(quarters(self.scales, index, self.shift));
            let zeros = lanes.splat_quarters(quarters(self.zeros, index, self.shift));
            for (below, floats) in floats.iter_mut().enumerate() {
                *floats = lanes.multiply_add(lanes.nibbles(words, below as u32), scales, zeros);
            }
        }
        floats
    }
}

/// Rows of a [`BlockWeight`]; `N` words contain 128 values.
pub(super) struct BlockWeightRows<'a, const N: usize> {
    weight: &'a BlockWeight,
    /// Words and scales per row.
    words: usize,
    scales: usize,
}

impl<'a, const N: usize> BlockWeightRows<'a, N> {
    /// Views a weight of `n` rows.
    pub(super) fn new(weight: &'a BlockWeight, n: usize) -> Self {
        Self { weight, words: weight.codes.len() / n, scales: weight.scales.len() / n }
    }
}

/// Rows of int8 values in blocks.
pub(super) type Int8BlockRows<'a> = BlockWeightRows<'a, INT8_WORDS>;
/// Rows of 4-bit values in blocks.
pub(super) type Int4BlockRows<'a> = BlockWeightRows<'a, INT4_WORDS>;

/// Row of a [`BlockWeight`].
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockWeightRow<'a, const N: usize> {
    words: RowBlocks<'a, u32, N>,
    scales: &'a [f16],
}

impl<const N: usize> WeightRows for BlockWeightRows<'_, N>
where
    for<'a> BlockWeightRow<'a, N>: WeightRow,
{
    const STRIDED: bool = N == INT4_WORDS;

    type Row<'a>
        = BlockWeightRow<'a, N>
    where
        Self: 'a;

    #[inline(always)]
    fn row(&self, row: usize) -> BlockWeightRow<'_, N> {
        let words = RowBlocks::new(&self.weight.codes, row, self.words);
        BlockWeightRow { words, scales: &self.weight.scales[row * self.scales..][..self.scales] }
    }
}

impl WeightRow for BlockWeightRow<'_, INT8_WORDS> {
    type Block = [u32; INT8_WORDS];

    #[inline(always)]
    fn whole_blocks(&self) -> &[[u32; INT8_WORDS]] {
        self.words.whole
    }

    #[inline(always)]
    fn last_block(&self) -> [u32; INT8_WORDS] {
        self.words.padded_rest()
    }

    #[inline(always)]
    fn dequantize<L: FloatSimd>(&self, lanes: L, block: &[u32; INT8_WORDS], index: usize) -> [L::Floats; VECTORS] {
        let (scales, zero) = (quarters(self.scales, index, 2), lanes.splat(0.0));
        let mut floats = block.to_floats(lanes);
        for (at, floats) in floats.iter_mut().enumerate() {
            *floats = lanes.multiply_add(*floats, lanes.splat(scales[at * 4 / VECTORS]), zero);
        }
        floats
    }
}

impl WeightRow for BlockWeightRow<'_, INT4_WORDS> {
    type Block = [u32; INT4_WORDS];

    #[inline(always)]
    fn whole_blocks(&self) -> &[[u32; INT4_WORDS]] {
        self.words.whole
    }

    #[inline(always)]
    fn last_block(&self) -> [u32; INT4_WORDS] {
        self.words.padded_rest()
    }

    #[inline(always)]
    fn dequantize<L: FloatSimd>(&self, lanes: L, block: &[u32; INT4_WORDS], index: usize) -> [L::Floats; VECTORS] {
        let (words, zero) = (lanes.words(block), lanes.splat(0.0));
        let scales = lanes.splat_quarters(quarters(self.scales, index, 2));
        let mut floats = [zero; VECTORS];
        for (below, floats) in floats.iter_mut().enumerate() {
            *floats = lanes.multiply_add(lanes.nibbles(words, below as u32), scales, zero);
        }
        floats
    }
}

/// Returns the floats of the quarters of a block with `2^shift` groups.
#[inline(always)]
fn quarters<S: StoredFloat>(floats: &[S], block: usize, shift: u32) -> [f32; 4] {
    let mut quarters = [0.0; 4];
    if shift == 2
        && let Some(four) = floats.as_chunks::<4>().0.get(block)
    {
        for (quarter, float) in quarters.iter_mut().zip(four) {
            *quarter = float.to_f32();
        }
    } else {
        for (at, quarter) in quarters.iter_mut().enumerate() {
            // The last block of a row may have fewer groups.
            *quarter = floats[((4 * block + at) << shift >> 2).min(floats.len() - 1)].to_f32();
        }
    }
    quarters
}
