//! Sixteen floats side by side, whatever instructions there are.

use crate::rowwise::bf16;

/// Numbers that are worked on together.
pub const WIDTH: usize = 16;

/// Sixteen numbers where a vector is read in one piece.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
pub struct Sixteen(pub [f32; WIDTH]);

/// The instructions of one set, proven to be there by the value. Each function must be inlined into a [`FloatJob`] that the
/// set runs, or it is a call.
pub trait Lanes: Copy {
    /// Sixteen numbers.
    type Floats: Copy;
    /// Sixteen words.
    type Words: Copy;

    /// Rows, and vectors of sixteen columns, of a tile whose sums stay in registers.
    const TILE: (usize, usize);

    /// The same number sixteen times.
    fn splat(self, number: f32) -> Self::Floats;

    /// Four numbers, each four times in a row.
    fn quarters(self, numbers: [f32; 4]) -> Self::Floats;

    /// Sixteen numbers.
    fn load(self, numbers: &[f32; WIDTH]) -> Self::Floats;

    /// Sixteen bit patterns of bf16.
    fn load_bf16(self, numbers: &[u16; WIDTH]) -> Self::Floats;

    /// Sixteen signed bytes, the first in the lowest bits.
    fn load_i8(self, codes: &[u32; 4]) -> Self::Floats;

    /// Sixteen words of eight 4-bit codes each.
    fn words(self, codes: &[u32; WIDTH]) -> Self::Words;

    /// The code of each word that so many others lie below, less 8.
    fn nibbles(self, words: Self::Words, below: u32) -> Self::Floats;

    /// `a * b + c`, rounded once where the set can.
    fn multiply_add(self, a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;

    /// The same of one number each, which the compiler puts side by side.
    fn fused(self, a: f32, b: f32, c: f32) -> f32;

    /// Rounds numbers to bf16, as many as there is place for.
    #[inline(always)]
    fn round_to_bf16(self, numbers: &[f32], to: &mut [u16]) {
        to.iter_mut().zip(numbers).for_each(|(to, &number)| *to = bf16(number));
    }

    /// The numbers.
    fn store(self, floats: Self::Floats) -> [f32; WIDTH];

    /// Their sum: halves are added until one number is left.
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

/// What a set is to run, all of it inlined.
pub trait FloatJob {
    /// Runs it.
    fn on<L: Lanes>(self, lanes: L);
}
