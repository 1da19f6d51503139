//! Portable interface of sixteen-wide f32 SIMD.

use crate::rowwise::to_bf16;

/// Elements per vector.
pub(super) const WIDTH: usize = 16;

/// Sixteen floats, aligned to a cache line.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
pub(super) struct AlignedFloats(pub [f32; WIDTH]);

/// SIMD operations of one instruction set; a value proves that the processor supports it. Every function must be
/// inlined into a [`FloatTask`] that the set runs; otherwise it is a call.
pub(super) trait FloatSimd: Copy {
    /// Sixteen floats.
    type Floats: Copy;
    /// Sixteen words.
    type Words: Copy;
    /// Floats of the sixteen 4-bit values.
    type Table: Copy;

    /// Rows, and vectors of sixteen columns, of a tile whose accumulators stay in registers.
    const TILE: (usize, usize);

    /// Broadcasts one value.
    fn splat(self, number: f32) -> Self::Floats;

    /// Broadcasts each of four values to four adjacent elements.
    fn splat_quarters(self, numbers: [f32; 4]) -> Self::Floats;

    /// Loads sixteen floats.
    fn load(self, numbers: &[f32; WIDTH]) -> Self::Floats;

    /// Loads sixteen bf16 bit patterns.
    fn load_bf16(self, numbers: &[u16; WIDTH]) -> Self::Floats;

    /// Loads sixteen signed bytes, the first in the lowest bits.
    fn load_i8(self, codes: &[u32; 4]) -> Self::Floats;

    /// Loads sixteen words of eight 4-bit values each.
    fn words(self, codes: &[u32; WIDTH]) -> Self::Words;

    /// Returns the 4-bit value of each word at index `below`, minus 8.
    fn nibbles(self, words: Self::Words, below: u32) -> Self::Floats;

    /// Table of the floats `(value - 8) * scale + zero` for each 4-bit value.
    fn nibble_table(self, scale: f32, zero: f32) -> Self::Table;

    /// Returns the float of the 4-bit value of each word at index `below`.
    fn look_up_nibbles(self, words: Self::Words, below: u32, table: Self::Table) -> Self::Floats;

    /// `a * b + c`, rounded once if the set supports it.
    fn multiply_add(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;

    /// Scalar `a * b + c`, which the compiler vectorizes.
    fn scalar_multiply_add(self, a: f32, b: f32, c: f32) -> f32;

    /// Rounds as many elements to bf16 as `to` holds.
    #[inline(always)]
    fn round_to_bf16(self, numbers: &[f32], to: &mut [u16]) {
        to.iter_mut().zip(numbers).for_each(|(to, &number)| *to = to_bf16(number));
    }

    /// Stores sixteen floats.
    fn store(self, floats: Self::Floats) -> [f32; WIDTH];

    /// Horizontal sum, by repeatedly adding the upper half to the lower.
    #[inline(always)]
    fn sum(self, floats: Self::Floats) -> f32 {
        let mut numbers = self.store(floats);
        for half in [8, 4, 2, 1] {
            for lane in 0..half {
                numbers[lane] += numbers[lane + half];
            }
        }
        numbers[0]
    }
}

/// Task that an instruction set runs, fully inlined.
pub(super) trait FloatTask {
    /// Runs the task.
    fn execute<L: FloatSimd>(self, lanes: L);
}
