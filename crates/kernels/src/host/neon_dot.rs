//! The dot products of newer 64-bit ARMs: 16 products of signed bytes in an instruction.

use super::bytes::{ByteJob, Bytes};
use super::neon::Neon;
use core::arch::aarch64::{int8x16_t, int32x4_t, vdupq_n_s32, vdupq_n_u32, vreinterpretq_s8_u32};
use core::arch::asm;

/// A processor with them.
#[derive(Debug, Clone, Copy)]
pub struct NeonDot(());

impl NeonDot {
    /// The proof that this one is.
    pub fn here() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("dotprod").then_some(Self(()))
    }

    /// Runs something with its instructions.
    pub fn run<J: ByteJob>(self, job: J) {
        #[target_feature(enable = "neon,dotprod")]
        fn inside<J: ByteJob>(set: NeonDot, job: J) {
            job.on(set);
        }
        // SAFETY: there is a value of this type only where the processor has the instructions.
        unsafe { inside(self, job) }
    }
}

impl Bytes for NeonDot {
    type Sums = [int32x4_t; 4];
    type Words = [int8x16_t; 4];

    // Twenty-four registers of sums, four of weights and one of x.
    const TILE: (usize, usize) = (6, 1);
    const ADDED: u8 = 0;

    #[inline(always)]
    fn nothing(self) -> [int32x4_t; 4] {
        // SAFETY: there is a value of this type only where the processor has the instructions.
        unsafe { [vdupq_n_s32(0); 4] }
    }

    #[inline(always)]
    fn words(self, words: &[u32; 16]) -> [int8x16_t; 4] {
        Neon::signed_words(words)
    }

    #[inline(always)]
    fn add_products(self, mut sums: [int32x4_t; 4], words: [int8x16_t; 4], x: u32) -> [int32x4_t; 4] {
        // SAFETY: as above; an instruction whose function is not in stable Rust yet, which touches registers alone.
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
        Neon::stored(sums)
    }
}
