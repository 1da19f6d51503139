//! Portable fallback without special instructions; also the reference in tests.

use super::float_simd::{FloatSimd, WIDTH};
use super::int8_simd::Int8Simd;
use crate::rowwise::bf16_to_f32;

/// Any processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Portable;

impl FloatSimd for Portable {
    type Floats = [f32; WIDTH];
    type Words = [u32; WIDTH];
    /// Scale and zero point.
    type Table = [[f32; WIDTH]; 2];

    const TILE: (usize, usize) = (2, 1);

    #[inline(always)]
    fn splat(self, number: f32) -> [f32; WIDTH] {
        [number; WIDTH]
    }

    #[inline(always)]
    fn splat_quarters(self, numbers: [f32; 4]) -> [f32; WIDTH] {
        let mut all = [0.0; WIDTH];
        for (lane, number) in all.iter_mut().enumerate() {
            *number = numbers[lane / 4];
        }
        all
    }

    #[inline(always)]
    fn load(self, numbers: &[f32; WIDTH]) -> [f32; WIDTH] {
        *numbers
    }

    #[inline(always)]
    fn load_bf16(self, numbers: &[u16; WIDTH]) -> [f32; WIDTH] {
        let mut all = [0.0; WIDTH];
        for (number, &bits) in all.iter_mut().zip(numbers) {
            *number = bf16_to_f32(bits);
        }
        all
    }

    #[inline(always)]
    fn load_i8(self, codes: &[u32; 4]) -> [f32; WIDTH] {
        let mut all = [0.0; WIDTH];
        for (lane, number) in all.iter_mut().enumerate() {
            *number = f32::from(codes[lane / 4].to_le_bytes()[lane % 4] as i8);
        }
        all
    }

    #[inline(always)]
    fn words(self, codes: &[u32; WIDTH]) -> [u32; WIDTH] {
        *codes
    }

    #[inline(always)]
    fn nibbles(self, words: [u32; WIDTH], below: u32) -> [f32; WIDTH] {
        let mut all = [0.0; WIDTH];
        for (number, word) in all.iter_mut().zip(words) {
            *number = (word >> (4 * below) & 15) as f32 - 8.0;
        }
        all
    }

    // Separate multiplication and addition: a fused one would be a function call on many processors.
    #[inline(always)]
    fn nibble_table(self, scale: f32, zero: f32) -> [[f32; WIDTH]; 2] {
        [self.splat(scale), self.splat(zero)]
    }

    #[inline(always)]
    fn look_up_nibbles(self, words: [u32; WIDTH], below: u32, [scale, zero]: [[f32; WIDTH]; 2]) -> [f32; WIDTH] {
        self.multiply_add(self.nibbles(words, below), scale, zero)
    }

    #[inline(always)]
    fn multiply_add(self, a: [f32; WIDTH], b: [f32; WIDTH], mut c: [f32; WIDTH]) -> [f32; WIDTH] {
        for lane in 0..WIDTH {
            c[lane] += a[lane] * b[lane];
        }
        c
    }

    #[inline(always)]
    fn scalar_multiply_add(self, a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }

    #[inline(always)]
    fn store(self, floats: [f32; WIDTH]) -> [f32; WIDTH] {
        floats
    }
}

impl Int8Simd for Portable {
    type Sums = [i32; 16];
    type Words = [u32; 16];

    const TILE: (usize, usize) = (2, 1);
    const WEIGHT_OFFSET: u8 = 128;

    #[inline(always)]
    fn zero(self) -> [i32; 16] {
        [0; 16]
    }

    #[inline(always)]
    fn words(self, words: &[u32; 16]) -> [u32; 16] {
        *words
    }

    #[inline(always)]
    fn dot_accumulate(self, mut sums: [i32; 16], words: [u32; 16], x: u32) -> [i32; 16] {
        for (sum, word) in sums.iter_mut().zip(words) {
            for (code, x) in word.to_le_bytes().into_iter().zip(x.to_le_bytes()) {
                *sum = sum.wrapping_add(i32::from(code) * i32::from(x as i8));
            }
        }
        sums
    }

    #[inline(always)]
    fn store(self, sums: [i32; 16]) -> [i32; 16] {
        sums
    }
}
