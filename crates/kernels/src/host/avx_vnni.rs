//! AVX-VNNI: 32 int8 products per instruction, on processors without AVX-512.

use super::int8_simd::{Int8Simd, Int8Task};
use core::arch::x86_64::{
    __m256i, _mm256_dpbusd_avx_epi32, _mm256_loadu_si256, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_storeu_si256,
};

/// Proof that the processor has AVX-VNNI.
#[derive(Debug, Clone, Copy)]
pub(super) struct AvxVnni(());

impl AvxVnni {
    /// Returns the proof if the processor has the instructions.
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("avxvnni")).then_some(Self(()))
    }

    /// Runs a task compiled with these instructions.
    pub(super) fn run<J: Int8Task>(self, job: J) {
        #[target_feature(enable = "avx2,avxvnni")]
        fn inside<J: Int8Task>(set: AvxVnni, job: J) {
            job.execute(set);
        }
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { inside(self, job) }
    }
}

impl Int8Simd for AvxVnni {
    type Sums = [__m256i; 2];
    type Words = [__m256i; 2];

    // Twelve accumulator registers, two for weights and one for x.
    const TILE: (usize, usize) = (6, 1);
    const WEIGHT_OFFSET: u8 = 128;

    #[inline(always)]
    fn zero(self) -> [__m256i; 2] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { [_mm256_setzero_si256(); 2] }
    }

    #[inline(always)]
    fn words(self, words: &[u32; 16]) -> [__m256i; 2] {
        // SAFETY: the processor has the instructions; sixteen words are read.
        unsafe { [_mm256_loadu_si256(words.as_ptr().cast()), _mm256_loadu_si256(words[8..].as_ptr().cast())] }
    }

    #[inline(always)]
    fn dot_accumulate(self, [low, high]: [__m256i; 2], words: [__m256i; 2], x: u32) -> [__m256i; 2] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe {
            let x = _mm256_set1_epi32(x as i32);
            [_mm256_dpbusd_avx_epi32(low, words[0], x), _mm256_dpbusd_avx_epi32(high, words[1], x)]
        }
    }

    #[inline(always)]
    fn store(self, [low, high]: [__m256i; 2]) -> [i32; 16] {
        let mut numbers = [0; 16];
        // SAFETY: the processor has the instructions; sixteen accumulators are written.
        unsafe {
            _mm256_storeu_si256(numbers.as_mut_ptr().cast(), low);
            _mm256_storeu_si256(numbers[8..].as_mut_ptr().cast(), high);
        }
        numbers
    }
}
