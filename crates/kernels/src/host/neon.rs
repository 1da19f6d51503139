//! NEON on 64-bit ARM: sixteen floats in four registers; int8 products through 16-bit intermediates.

use super::float_simd::{FloatSimd, FloatTask, WIDTH};
use super::int8_simd::{Int8Simd, Int8Task};
use core::arch::aarch64::{
    float32x4_t, int8x16_t, int16x8_t, int32x4_t, uint32x4_t, vandq_u32, vcvtq_f32_s32, vdupq_n_f32, vdupq_n_s32,
    vdupq_n_u32, vfmaq_f32, vget_low_s8, vget_low_s16, vget_low_u16, vld1q_f32, vld1q_s8, vld1q_u16, vld1q_u32,
    vmovl_high_s8, vmovl_high_s16, vmovl_high_u16, vmovl_s8, vmovl_s16, vmovl_u16, vmull_high_s8, vmull_s8,
    vpadalq_s16, vpaddq_s32, vreinterpretq_f32_u32, vreinterpretq_s8_u32, vreinterpretq_s32_u32, vshlq_n_u32,
    vshlq_u32, vst1q_f32, vst1q_s32, vsubq_s32,
};

/// Proof that the processor has NEON.
#[derive(Debug, Clone, Copy)]
pub struct Neon(());

impl Neon {
    /// Returns the proof if the processor has the instructions.
    pub fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }

    /// Runs a task compiled with these instructions.
    pub fn run<J: FloatTask>(self, job: J) {
        #[target_feature(enable = "neon")]
        fn inside<J: FloatTask>(set: Neon, job: J) {
            job.execute(set);
        }
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { inside(self, job) }
    }

    /// Runs an int8 task compiled with these instructions.
    pub fn run_bytes<J: Int8Task>(self, job: J) {
        #[target_feature(enable = "neon")]
        fn inside<J: Int8Task>(set: Neon, job: J) {
            job.execute(set);
        }
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { inside(self, job) }
    }

    #[inline(always)]
    fn floats(self, numbers: int16x8_t) -> [float32x4_t; 2] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { [vcvtq_f32_s32(vmovl_s16(vget_low_s16(numbers))), vcvtq_f32_s32(vmovl_high_s16(numbers))] }
    }

    /// Loads sixteen words of signed bytes.
    #[inline(always)]
    pub(super) fn signed_words(words: &[u32; 16]) -> [int8x16_t; 4] {
        // SAFETY: every 64-bit ARM processor has the instruction; sixteen words are read, four at a time.
        unsafe { [0, 4, 8, 12].map(|first| vld1q_s8(words[first..].as_ptr().cast())) }
    }

    /// Stores sixteen accumulators.
    #[inline(always)]
    pub(super) fn store_i32(sums: [int32x4_t; 4]) -> [i32; 16] {
        let mut numbers = [0; 16];
        for (four, sums) in numbers.chunks_exact_mut(4).zip(sums) {
            // SAFETY: every 64-bit ARM processor has the instruction; four accumulators are written.
            unsafe { vst1q_s32(four.as_mut_ptr(), sums) };
        }
        numbers
    }
}

impl FloatSimd for Neon {
    type Floats = [float32x4_t; 4];
    type Words = [uint32x4_t; 4];
    /// Scale and zero point.
    type Table = [[float32x4_t; 4]; 2];

    // 24 accumulator registers, four for weights and one for x.
    const TILE: (usize, usize) = (6, 1);

    #[inline(always)]
    fn splat(self, number: f32) -> [float32x4_t; 4] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { [vdupq_n_f32(number); 4] }
    }

    #[inline(always)]
    fn splat_quarters(self, numbers: [f32; 4]) -> [float32x4_t; 4] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { numbers.map(|number| vdupq_n_f32(number)) }
    }

    #[inline(always)]
    fn load(self, numbers: &[f32; WIDTH]) -> [float32x4_t; 4] {
        // SAFETY: the processor has the instructions; sixteen elements are read, four at a time.
        unsafe { [0, 4, 8, 12].map(|first| vld1q_f32(numbers[first..].as_ptr())) }
    }

    #[inline(always)]
    fn load_bf16(self, numbers: &[u16; WIDTH]) -> [float32x4_t; 4] {
        // SAFETY: the processor has the instructions; sixteen elements are read, eight at a time.
        unsafe {
            let [low, high] = [0, 8].map(|first| vld1q_u16(numbers[first..].as_ptr()));
            let words = [
                vmovl_u16(vget_low_u16(low)),
                vmovl_high_u16(low),
                vmovl_u16(vget_low_u16(high)),
                vmovl_high_u16(high),
            ];
            words.map(|words| vreinterpretq_f32_u32(vshlq_n_u32::<16>(words)))
        }
    }

    #[inline(always)]
    fn load_i8(self, codes: &[u32; 4]) -> [float32x4_t; 4] {
        // SAFETY: the processor has the instructions; four words are read.
        let [low, high] = unsafe {
            let codes = vld1q_s8(codes.as_ptr().cast());
            [vmovl_s8(vget_low_s8(codes)), vmovl_high_s8(codes)]
        };
        let ([a, b], [c, d]) = (self.floats(low), self.floats(high));
        [a, b, c, d]
    }

    #[inline(always)]
    fn words(self, codes: &[u32; WIDTH]) -> [uint32x4_t; 4] {
        // SAFETY: the processor has the instructions; sixteen words are read, four at a time.
        unsafe { [0, 4, 8, 12].map(|first| vld1q_u32(codes[first..].as_ptr())) }
    }

    #[inline(always)]
    fn nibbles(self, words: [uint32x4_t; 4], below: u32) -> [float32x4_t; 4] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe {
            // A left shift by a negative count is a right shift.
            let (shift, mask, middle) = (vdupq_n_s32(-4 * below as i32), vdupq_n_u32(15), vdupq_n_s32(8));
            words.map(|words| {
                let codes = vreinterpretq_s32_u32(vandq_u32(vshlq_u32(words, shift), mask));
                vcvtq_f32_s32(vsubq_s32(codes, middle))
            })
        }
    }

    #[inline(always)]
    fn nibble_table(self, scale: f32, zero: f32) -> [[float32x4_t; 4]; 2] {
        [self.splat(scale), self.splat(zero)]
    }

    #[inline(always)]
    fn look_up_nibbles(
        self,
        words: [uint32x4_t; 4],
        below: u32,
        [scale, zero]: [[float32x4_t; 4]; 2],
    ) -> [float32x4_t; 4] {
        self.multiply_add(self.nibbles(words, below), scale, zero)
    }

    #[inline(always)]
    fn multiply_add(self, a: [float32x4_t; 4], b: [float32x4_t; 4], c: [float32x4_t; 4]) -> [float32x4_t; 4] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { [0, 1, 2, 3].map(|part| vfmaq_f32(c[part], a[part], b[part])) }
    }

    #[inline(always)]
    fn scalar_multiply_add(self, a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }

    #[inline(always)]
    fn store(self, floats: [float32x4_t; 4]) -> [f32; WIDTH] {
        let mut numbers = [0.0; WIDTH];
        for (four, floats) in numbers.chunks_exact_mut(4).zip(floats) {
            // SAFETY: the processor has the instructions; four elements are written.
            unsafe { vst1q_f32(four.as_mut_ptr(), floats) };
        }
        numbers
    }
}

impl Int8Simd for Neon {
    /// Two partial sums per word, which are added when stored.
    type Sums = [[int32x4_t; 2]; 4];
    type Words = [int8x16_t; 4];

    // Sixteen accumulator registers, four for weights, one for x, and some for intermediate products.
    const TILE: (usize, usize) = (2, 1);
    const WEIGHT_OFFSET: u8 = 0;

    #[inline(always)]
    fn zero(self) -> [[int32x4_t; 2]; 4] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { [[vdupq_n_s32(0); 2]; 4] }
    }

    #[inline(always)]
    fn words(self, words: &[u32; 16]) -> [int8x16_t; 4] {
        Self::signed_words(words)
    }

    // 16 bits hold one product, but not the sum of two.
    #[inline(always)]
    fn dot_accumulate(self, sums: [[int32x4_t; 2]; 4], words: [int8x16_t; 4], x: u32) -> [[int32x4_t; 2]; 4] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe {
            let x = vreinterpretq_s8_u32(vdupq_n_u32(x));
            [0, 1, 2, 3].map(|part| {
                let ([low, high], words) = (sums[part], words[part]);
                let first = vmull_s8(vget_low_s8(words), vget_low_s8(x));
                [vpadalq_s16(low, first), vpadalq_s16(high, vmull_high_s8(words, x))]
            })
        }
    }

    #[inline(always)]
    fn store(self, sums: [[int32x4_t; 2]; 4]) -> [i32; 16] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        Self::store_i32(unsafe { sums.map(|[low, high]| vpaddq_s32(low, high)) })
    }
}
