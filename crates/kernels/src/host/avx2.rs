//! AVX2 and FMA: sixteen floats in two registers; int8 products through 16-bit intermediates.

use super::float_simd::{FloatSimd, FloatTask, WIDTH};
use super::int8_simd::{Int8Simd, Int8Task};
use core::arch::x86_64::{
    __m256, __m256i, _mm_cvtsi32_si128, _mm_loadu_si64, _mm_loadu_si128, _mm256_add_epi32, _mm256_and_si256,
    _mm256_castsi256_ps, _mm256_cvtepi8_epi32, _mm256_cvtepi32_ps, _mm256_cvtepu16_epi32, _mm256_fmadd_ps,
    _mm256_loadu_ps, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_ps,
    _mm256_setr_ps, _mm256_setzero_si256, _mm256_slli_epi16, _mm256_slli_epi32, _mm256_srai_epi16, _mm256_srl_epi32,
    _mm256_srli_epi16, _mm256_storeu_ps, _mm256_storeu_si256, _mm256_sub_epi32,
};

/// Proof that the processor has AVX2 and FMA.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Returns the proof if the processor has the instructions.
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Self(()))
    }

    /// Runs a task compiled with these instructions.
    pub(super) fn run<J: FloatTask>(self, job: J) {
        #[target_feature(enable = "avx2,fma")]
        fn inside<J: FloatTask>(set: Avx2, job: J) {
            job.execute(set);
        }
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { inside(self, job) }
    }

    /// Runs an int8 task compiled with these instructions.
    pub(super) fn run_bytes<J: Int8Task>(self, job: J) {
        #[target_feature(enable = "avx2,fma")]
        fn inside<J: Int8Task>(set: Avx2, job: J) {
            job.execute(set);
        }
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { inside(self, job) }
    }
}

impl FloatSimd for Avx2 {
    type Floats = [__m256; 2];
    type Words = [__m256i; 2];
    /// Scale and zero point.
    type Table = [[__m256; 2]; 2];

    // Twelve accumulator registers, two for weights and one for x.
    const TILE: (usize, usize) = (6, 1);

    #[inline(always)]
    fn splat(self, number: f32) -> [__m256; 2] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { [_mm256_set1_ps(number); 2] }
    }

    #[inline(always)]
    fn splat_quarters(self, [a, b, c, d]: [f32; 4]) -> [__m256; 2] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { [_mm256_setr_ps(a, a, a, a, b, b, b, b), _mm256_setr_ps(c, c, c, c, d, d, d, d)] }
    }

    #[inline(always)]
    fn load(self, numbers: &[f32; WIDTH]) -> [__m256; 2] {
        // SAFETY: the processor has the instructions; sixteen elements are read.
        unsafe { [_mm256_loadu_ps(numbers.as_ptr()), _mm256_loadu_ps(numbers[8..].as_ptr())] }
    }

    #[inline(always)]
    fn load_bf16(self, numbers: &[u16; WIDTH]) -> [__m256; 2] {
        // SAFETY: the processor has the instructions; sixteen elements are read.
        unsafe {
            let low = _mm256_cvtepu16_epi32(_mm_loadu_si128(numbers.as_ptr().cast()));
            let high = _mm256_cvtepu16_epi32(_mm_loadu_si128(numbers[8..].as_ptr().cast()));
            [_mm256_castsi256_ps(_mm256_slli_epi32::<16>(low)), _mm256_castsi256_ps(_mm256_slli_epi32::<16>(high))]
        }
    }

    #[inline(always)]
    fn load_i8(self, codes: &[u32; 4]) -> [__m256; 2] {
        // SAFETY: the processor has the instructions; four words are read.
        unsafe {
            let low = _mm256_cvtepi8_epi32(_mm_loadu_si64(codes.as_ptr().cast()));
            let high = _mm256_cvtepi8_epi32(_mm_loadu_si64(codes[2..].as_ptr().cast()));
            [_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)]
        }
    }

    #[inline(always)]
    fn words(self, codes: &[u32; WIDTH]) -> [__m256i; 2] {
        // SAFETY: the processor has the instructions; sixteen words are read.
        unsafe { [_mm256_loadu_si256(codes.as_ptr().cast()), _mm256_loadu_si256(codes[8..].as_ptr().cast())] }
    }

    #[inline(always)]
    fn nibbles(self, [low, high]: [__m256i; 2], below: u32) -> [__m256; 2] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe {
            let (shift, mask) = (_mm_cvtsi32_si128(4 * below as i32), _mm256_set1_epi32(15));
            let middle = _mm256_set1_epi32(8);
            let low = _mm256_sub_epi32(_mm256_and_si256(_mm256_srl_epi32(low, shift), mask), middle);
            let high = _mm256_sub_epi32(_mm256_and_si256(_mm256_srl_epi32(high, shift), mask), middle);
            [_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high)]
        }
    }

    #[inline(always)]
    fn nibble_table(self, scale: f32, zero: f32) -> [[__m256; 2]; 2] {
        [self.splat(scale), self.splat(zero)]
    }

    #[inline(always)]
    fn look_up_nibbles(self, words: [__m256i; 2], below: u32, [scale, zero]: [[__m256; 2]; 2]) -> [__m256; 2] {
        self.multiply_add(self.nibbles(words, below), scale, zero)
    }

    #[inline(always)]
    fn multiply_add(self, a: [__m256; 2], b: [__m256; 2], c: [__m256; 2]) -> [__m256; 2] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])] }
    }

    #[inline(always)]
    fn scalar_multiply_add(self, a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }

    #[inline(always)]
    fn store(self, [low, high]: [__m256; 2]) -> [f32; WIDTH] {
        let mut numbers = [0.0; WIDTH];
        // SAFETY: the processor has the instructions; sixteen elements are written.
        unsafe {
            _mm256_storeu_ps(numbers.as_mut_ptr(), low);
            _mm256_storeu_ps(numbers[8..].as_mut_ptr(), high);
        }
        numbers
    }
}

impl Int8Simd for Avx2 {
    type Sums = [__m256i; 2];
    /// First and third byte of each word as 16-bit integers, and second and fourth byte.
    type Words = [[__m256i; 2]; 2];

    // Eight accumulator registers, four for weights and two for x.
    const TILE: (usize, usize) = (4, 1);
    const WEIGHT_OFFSET: u8 = 128;

    #[inline(always)]
    fn zero(self) -> [__m256i; 2] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { [_mm256_setzero_si256(); 2] }
    }

    #[inline(always)]
    fn words(self, words: &[u32; 16]) -> [[__m256i; 2]; 2] {
        // SAFETY: the processor has the instructions; sixteen words are read.
        unsafe {
            let mask = _mm256_set1_epi16(0xFF);
            let low = _mm256_loadu_si256(words.as_ptr().cast());
            let high = _mm256_loadu_si256(words[8..].as_ptr().cast());
            [
                [_mm256_and_si256(low, mask), _mm256_srli_epi16::<8>(low)],
                [_mm256_and_si256(high, mask), _mm256_srli_epi16::<8>(high)],
            ]
        }
    }

    // `vpmaddubsw` would add two products in 16 bits, which can overflow.
    #[inline(always)]
    fn dot_accumulate(self, [low, high]: [__m256i; 2], words: [[__m256i; 2]; 2], x: u32) -> [__m256i; 2] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe {
            let x = _mm256_set1_epi32(x as i32);
            let (even, odd) = (_mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(x)), _mm256_srai_epi16::<8>(x));
            let [[low_even, low_odd], [high_even, high_odd]] = words;
            let products = _mm256_add_epi32(_mm256_madd_epi16(low_even, even), _mm256_madd_epi16(low_odd, odd));
            let more = _mm256_add_epi32(_mm256_madd_epi16(high_even, even), _mm256_madd_epi16(high_odd, odd));
            [_mm256_add_epi32(low, products), _mm256_add_epi32(high, more)]
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
