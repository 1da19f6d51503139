//! AVX-512 VNNI: 64 int8 products per instruction.

use super::int8_simd::{Int8Simd, Int8Task};
use core::arch::x86_64::{
    __m512i, _mm512_dpbusd_epi32, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_setzero_si512, _mm512_storeu_si512,
};

/// Proof that the processor has AVX-512 VNNI.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512Vnni(());

impl Avx512Vnni {
    /// Returns the proof if the processor has the instructions.
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni")).then_some(Self(()))
    }

    /// Runs a task compiled with these instructions.
    pub(super) fn run<J: Int8Task>(self, job: J) {
        #[target_feature(enable = "avx512f,avx512vnni")]
        fn inside<J: Int8Task>(set: Avx512Vnni, job: J) {
            job.execute(set);
        }
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { inside(self, job) }
    }
}

impl Int8Simd for Avx512Vnni {
    type Sums = __m512i;
    type Words = __m512i;

    // 24 accumulator registers, two for weights and one for x.
    const TILE: (usize, usize) = (12, 2);
    const WEIGHT_OFFSET: u8 = 128;

    #[inline(always)]
    fn zero(self) -> __m512i {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn words(self, words: &[u32; 16]) -> __m512i {
        // SAFETY: the processor has the instructions; sixteen words are read.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }

    #[inline(always)]
    fn dot_accumulate(self, sums: __m512i, words: __m512i, x: u32) -> __m512i {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { _mm512_dpbusd_epi32(sums, words, _mm512_set1_epi32(x as i32)) }
    }

    #[inline(always)]
    fn store(self, sums: __m512i) -> [i32; 16] {
        let mut numbers = [0; 16];
        // SAFETY: the processor has the instructions; sixteen accumulators are written.
        unsafe { _mm512_storeu_si512(numbers.as_mut_ptr().cast(), sums) };
        numbers
    }
}
