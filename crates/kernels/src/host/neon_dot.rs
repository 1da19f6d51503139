//! Dot-product extension of 64-bit ARM (`sdot`): 16 int8 products per instruction.

use super::int8_simd::{Int8Simd, Int8Task};
use super::neon::Neon;
use core::arch::aarch64::{int8x16_t, int32x4_t, vdupq_n_s32, vdupq_n_u32, vreinterpretq_s8_u32};
use core::arch::asm;

/// Proof that the processor has the extension.
#[derive(Debug, Clone, Copy)]
pub struct NeonDot(());

impl NeonDot {
    /// Returns the proof if the processor has the instructions.
    pub fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("dotprod").then_some(Self(()))
    }

    /// Runs a task compiled with these instructions.
    pub fn run<J: Int8Task>(self, job: J) {
        #[target_feature(enable = "neon,dotprod")]
        fn inside<J: Int8Task>(set: NeonDot, job: J) {
            job.execute(set);
        }
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { inside(self, job) }
    }
}

impl Int8Simd for NeonDot {
    type Sums = [int32x4_t; 4];
    type Words = [int8x16_t; 4];

    // 24 accumulator registers, four for weights and one for x.
    const TILE: (usize, usize) = (6, 1);
    const WEIGHT_OFFSET: u8 = 0;

    #[inline(always)]
    fn zero(self) -> [int32x4_t; 4] {
        // SAFETY: a value of this type exists only if the processor has the instructions.
        unsafe { [vdupq_n_s32(0); 4] }
    }

    #[inline(always)]
    fn words(self, words: &[u32; 16]) -> [int8x16_t; 4] {
        Neon::signed_words(words)
    }

    #[inline(always)]
    fn dot_accumulate(self, mut sums: [int32x4_t; 4], words: [int8x16_t; 4], x: u32) -> [int32x4_t; 4] {
        // SAFETY: the processor has the instruction, which touches only registers. Stable Rust has no intrinsic for it
        // yet.
        unsafe {
            let x = vreinterpretq_s8_u32(vdupq_n_u32(x));
            for (sum, words) in sums.iter_mut().zip(words) {
                asm!(
                    "sdot {sum:v}.4s, {words:v}.16b, {x:v}.16b",
                    sum = inout(vreg) *sum,
                    words = in(vreg) words,
                    x = in(vreg) x,
                    options(pure, nomem, nostack, preserves_flags),
                );
            }
        }
        sums
    }

    #[inline(always)]
    fn store(self, sums: [int32x4_t; 4]) -> [i32; 16] {
        Neon::store_i32(sums)
    }
}
