//! AVX-512 VNNI: 64 products of bytes in an instruction.

use super::bytes::{ByteJob, Bytes};
use core::arch::x86_64::{
    __m512i, _mm512_dpbusd_epi32, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_setzero_si512, _mm512_storeu_si512,
};

/// A processor with AVX-512 VNNI.
#[derive(Debug, Clone, Copy)]
pub struct Avx512Vnni(());

impl Avx512Vnni {
    /// The proof that this one is.
    pub fn here() -> Option<Self> {
        (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni")).then_some(Self(()))
    }

    /// Runs something with its instructions.
    pub fn run<J: ByteJob>(self, job: J) {
        #[target_feature(enable = "avx512f,avx512vnni")]
        fn inside<J: ByteJob>(set: Avx512Vnni, job: J) {
            job.on(set);
        }
        // SAFETY: there is a value of this type only where the processor has the instructions.
        unsafe { inside(self, job) }
    }
}

impl Bytes for Avx512Vnni {
    type Sums = __m512i;
    type Words = __m512i;

    // 24 registers of sums, two of weights and one of x.
    const TILE: (usize, usize) = (12, 2);
    const ADDED: u8 = 128;

    #[inline(always)]
    fn nothing(self) -> __m512i {
        // SAFETY: there is a value of this type only where the processor has the instructions.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn words(self, words: &[u32; 16]) -> __m512i {
        // SAFETY: as above; the sixteen words are read.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }

    #[inline(always)]
    fn add_products(self, sums: __m512i, words: __m512i, x: u32) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_dpbusd_epi32(sums, words, _mm512_set1_epi32(x as i32)) }
    }

    #[inline(always)]
    fn store(self, sums: __m512i) -> [i32; 16] {
        let mut numbers = [0; 16];
        // SAFETY: as above; the sixteen sums are written.
        unsafe { _mm512_storeu_si512(numbers.as_mut_ptr().cast(), sums) };
        numbers
    }
}
