//! AVX-512: sixteen floats in a register; a 16-entry lookup table decodes 4-bit values.

use super::float_simd::{FloatSimd, FloatTask, WIDTH};
use crate::rowwise::to_bf16;
use core::arch::x86_64::{
    __m256i, __m512, __m512i, _mm_cvtsi32_si128, _mm_loadu_ps, _mm_loadu_si128, _mm256_loadu_si256,
    _mm256_storeu_si256, _mm512_castps128_ps512, _mm512_castsi512_ps, _mm512_cvtepi8_epi32, _mm512_cvtepi32_ps,
    _mm512_cvtepu16_epi32, _mm512_cvtneps_pbh, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512,
    _mm512_permutexvar_ps, _mm512_set1_ps, _mm512_setr_epi32, _mm512_slli_epi32, _mm512_srl_epi32, _mm512_storeu_ps,
};
use core::mem::transmute;

/// Proof that the processor has AVX-512F.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512 {
    /// True if the processor has bf16 conversion instructions too.
    rounds_to_bf16: bool,
}

impl Avx512 {
    /// Returns the proof if the processor has the instructions.
    pub(super) fn detect() -> Option<Self> {
        let rounds_to_bf16 = is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512vl");
        is_x86_feature_detected!("avx512f").then_some(Self { rounds_to_bf16 })
    }

    /// Runs a task compiled with these instructions.
    pub(super) fn run<J: FloatTask>(self, job: J) {
        #[target_feature(enable = "avx512f")]
        fn inside<J: FloatTask>(set: Avx512, job: J) {
            job.execute(set);
        }
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { inside(self, job) }
    }
}

/// 4-bit values minus 8.
// SAFETY: both types have 64 bytes, and every bit pattern is valid.
const NIBBLES: __m512 = unsafe {
    transmute::<[f32; WIDTH], __m512>([
        -8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0,
    ])
};

impl FloatSimd for Avx512 {
    type Floats = __m512;
    type Words = __m512i;
    type Table = __m512;

    // 24 accumulator registers, two for weights and one for x.
    const TILE: (usize, usize) = (12, 2);

    #[inline(always)]
    fn splat(self, number: f32) -> __m512 {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { _mm512_set1_ps(number) }
    }

    #[inline(always)]
    fn splat_quarters(self, numbers: [f32; 4]) -> __m512 {
        // SAFETY: the processor has the instructions; four elements are read.
        unsafe {
            let four = _mm512_castps128_ps512(_mm_loadu_ps(numbers.as_ptr()));
            _mm512_permutexvar_ps(_mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3), four)
        }
    }

    #[inline(always)]
    fn load(self, numbers: &[f32; WIDTH]) -> __m512 {
        // SAFETY: the processor has the instructions; sixteen elements are read.
        unsafe { _mm512_loadu_ps(numbers.as_ptr()) }
    }

    #[inline(always)]
    fn load_bf16(self, numbers: &[u16; WIDTH]) -> __m512 {
        // SAFETY: the processor has the instructions; sixteen elements are read.
        unsafe {
            let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(numbers.as_ptr().cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
        }
    }

    #[inline(always)]
    fn load_i8(self, codes: &[u32; 4]) -> __m512 {
        // SAFETY: the processor has the instructions; four words are read.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(codes.as_ptr().cast()))) }
    }

    #[inline(always)]
    fn words(self, codes: &[u32; WIDTH]) -> __m512i {
        // SAFETY: the processor has the instructions; sixteen words are read.
        unsafe { _mm512_loadu_si512(codes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn nibbles(self, words: __m512i, below: u32) -> __m512 {
        self.look_up_nibbles(words, below, NIBBLES)
    }

    #[inline(always)]
    fn nibble_table(self, scale: f32, zero: f32) -> __m512 {
        self.multiply_add(NIBBLES, self.splat(scale), self.splat(zero))
    }

    #[inline(always)]
    fn look_up_nibbles(self, words: __m512i, below: u32, table: __m512) -> __m512 {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe {
            // The permutation uses only the lowest four bits of each index.
            _mm512_permutexvar_ps(_mm512_srl_epi32(words, _mm_cvtsi32_si128(4 * below as i32)), table)
        }
    }

    #[inline(always)]
    fn multiply_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn scalar_multiply_add(self, a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }

    #[inline(always)]
    fn round_to_bf16(self, numbers: &[f32], to: &mut [u16]) {
        /// Rounds to bf16; subnormals become 0.
        #[target_feature(enable = "avx512f,avx512bf16,avx512vl")]
        fn inside(numbers: &[[f32; WIDTH]], to: &mut [[u16; WIDTH]]) {
            for (numbers, to) in numbers.iter().zip(to) {
                // SAFETY: sixteen elements are read and written; both types have 32 bytes.
                unsafe {
                    let rounded: __m256i = transmute(_mm512_cvtneps_pbh(_mm512_loadu_ps(numbers.as_ptr())));
                    _mm256_storeu_si256(to.as_mut_ptr().cast(), rounded);
                }
            }
        }
        let (chunks, rest) = numbers.as_chunks();
        let (places, last) = to.as_chunks_mut();
        if self.rounds_to_bf16 {
            // SAFETY: the processor was checked for the instructions.
            unsafe { inside(chunks, places) };
        } else {
            places.iter_mut().zip(chunks).for_each(|(to, numbers)| *to = numbers.map(to_bf16));
        }
        last.iter_mut().zip(rest).for_each(|(to, &number)| *to = to_bf16(number));
    }

    #[inline(always)]
    fn store(self, floats: __m512) -> [f32; WIDTH] {
        let mut numbers = [0.0; WIDTH];
        // SAFETY: the processor has the instructions; sixteen elements are written.
        unsafe { _mm512_storeu_ps(numbers.as_mut_ptr(), floats) };
        numbers
    }
}
