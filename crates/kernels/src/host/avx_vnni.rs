//! AVX-VNNI: 32 products of bytes in an instruction, on processors without AVX-512.

use super::bytes::{ByteJob, Bytes};
use core::arch::x86_64::{
    __m256i, _mm256_dpbusd_avx_epi32, _mm256_loadu_si256, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_storeu_si256,
};

/// A processor with AVX-VNNI.
#[derive(Debug, Clone, Copy)]
pub struct AvxVnni(());

impl AvxVnni {
    /// The proof that this one is.
    pub fn here() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("avxvnni")).then_some(Self(()))
    }

    /// Runs something with its instructions.
    pub fn run<J: ByteJob>(self, job: J) {
        #[target_feature(enable = "avx2,avxvnni")]
        fn inside<J: ByteJob>(set: AvxVnni, job: J) {
            job.on(set);
        }
        // SAFETY: there is a value of this type only where the processor has the instructions.
        unsafe { inside(self, job) }
    }
}

impl Bytes for AvxVnni {
    type Sums = [__m256i; 2];
    type Words = [__m256i; 2];

    // Twelve registers of sums, two of weights and one of x.
    const TILE: (usize, usize) = (6, 1);
    const ADDED: u8 = 128;

    #[inline(always)]
    fn nothing(self) -> [__m256i; 2] {
        // SAFETY: there is a value of this type only where the processor has the instructions.
        unsafe { [_mm256_setzero_si256(); 2] }
    }

    #[inline(always)]
    fn words(self, words: &[u32; 16]) -> [__m256i; 2] {
        // SAFETY: as above; the sixteen words are read.
        unsafe { [_mm256_loadu_si256(words.as_ptr().cast()), _mm256_loadu_si256(words[8..].as_ptr().cast())] }
    }

    #[inline(always)]
    fn add_products(self, [low, high]: [__m256i; 2], words: [__m256i; 2], x: u32) -> [__m256i; 2] {
        // SAFETY: as above.
        unsafe {
            let x = _mm256_set1_epi32(x as i32);
            [_mm256_dpbusd_avx_epi32(low, words[0], x), _mm256_dpbusd_avx_epi32(high, words[1], x)]
        }
    }

    #[inline(always)]
    fn store(self, [low, high]: [__m256i; 2]) -> [i32; 16] {
        let mut numbers = [0; 16];
        // SAFETY: as above; the sixteen sums are written.
        unsafe {
            _mm256_storeu_si256(numbers.as_mut_ptr().cast(), low);
            _mm256_storeu_si256(numbers[8..].as_mut_ptr().cast(), high);
        }
        numbers
    }
}
