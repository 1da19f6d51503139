//! GEMM of bf16 operands that are quantized to e4m3 at run time: A is `[m, k]`, B is `[k, n]`, Y is `[m, n]` in bf16.
//!
//! Quantization is part of the operator. The row-wise operators quantize rows of A and columns of B as [`Quantization`]
//! does. The suite that the names come from never ran its two block-scaled families; their definition here:
//!
//! - `b128` follows DeepSeek-V3: one f32 scale per 1 x 128 elements of A along k and per 128 x 128 of B; both are
//!   dequantized and accumulated in f32.
//! - `mxfp8_b32` is OCP microscaling: blocks of 32 along k in both operands, with power-of-two scales rounded up.
//!
//! [`Quantization`]: super::quantization::Quantization

mod burn;
#[cfg(feature = "cuda")]
mod native;
mod reference;

use crate::operators::number_types::{BF16, allow};
use crate::operators::product::{AXES, in_sixteens, moves, size};
use crate::registry::table::Zoo;
use crate::{Along, Cost, Implementation, Moves, Operand, Operation, Signature, Slot, Spec, Suite, ZooError};
use calorimeter_recipes::{Dtype, Element};

/// Elements that share a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Shared {
    /// A row of A, a column of B; the output stays in units of the scales.
    Line,
    /// A row of A, a column of B; the output is multiplied by both scales.
    LineDequantized,
    /// 128 elements of A along k, 128 x 128 elements of B.
    Block,
    /// 32 elements along k in both operands.
    Micro,
}

/// Origin of the scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Scaling {
    /// Amax of the elements that share the scale.
    Dynamic,
    /// Constant 0.5, which maps 224 to 448, the largest e4m3 value.
    Static,
}

/// GEMM with quantized operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GemmQuantized(Shared, Scaling);

impl GemmQuantized {
    /// Operators with one scale per row of A and column of B.
    pub const OF_LINES: [Self; 3] = [
        Self(Shared::Line, Scaling::Dynamic),
        Self(Shared::LineDequantized, Scaling::Dynamic),
        Self(Shared::Line, Scaling::Static),
    ];

    /// Operators with scales per block.
    pub const OF_BLOCKS: [Self; 4] = [
        Self(Shared::Block, Scaling::Dynamic),
        Self(Shared::Block, Scaling::Static),
        Self(Shared::Micro, Scaling::Dynamic),
        Self(Shared::Micro, Scaling::Static),
    ];

    /// Checks the alignment that cuBLASLt requires; block scales come in groups of four rows.
    fn natively(&self, spec: &Spec) -> Result<(), String> {
        match (self.0, size(spec)) {
            (Shared::Line | Shared::LineDequantized, _) => in_sixteens(spec),
            (Shared::Block, (m, ..)) if !m.is_multiple_of(4) => Err(format!(
                "`native` multiplies block-scaled e4m3 by cuBLASLt, which requires m in multiples of 4; m is {m}"
            )),
            (Shared::Block | Shared::Micro, _) => Ok(()),
        }
    }

    /// Elements along k that share a scale.
    fn along_k(self, k: u64) -> u64 {
        match self.0 {
            Shared::Line | Shared::LineDequantized => k,
            Shared::Block => 128,
            Shared::Micro => 32,
        }
    }

    /// Dtype that burn multiplies in and rounds the product to.
    fn multiplied(self) -> Dtype {
        match self {
            // e4m3 values, also times a power of two, are exact in bf16.
            Self(Shared::Line | Shared::Micro, _) | Self(_, Scaling::Static) => Dtype::Bf16,
            _ => Dtype::F32,
        }
    }

    fn steps(self) -> Dtype {
        match self.0 {
            Shared::Line | Shared::LineDequantized => Dtype::Bf16,
            Shared::Block | Shared::Micro => Dtype::F32,
        }
    }
}

/// Registers the quantized GEMM operators with their implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators(GemmQuantized::OF_LINES).burn().native_where(GemmQuantized::natively);
    zoo.operators(GemmQuantized::OF_BLOCKS).burn().native_where(GemmQuantized::natively);
}

impl Signature for GemmQuantized {
    fn name(&self) -> &'static str {
        match self {
            Self(Shared::Line, Scaling::Dynamic) => "gemm_fp8_rowwise",
            Self(Shared::Line, Scaling::Static) => "gemm_fp8_rowwise_static_scaling",
            Self(Shared::LineDequantized, _) => "gemm_fp8_rowwise_w_dequantize",
            Self(Shared::Block, Scaling::Dynamic) => "gemm_fp8_b128_fp32",
            Self(Shared::Block, Scaling::Static) => "gemm_fp8_b128_fp32_static_scaling",
            Self(Shared::Micro, Scaling::Dynamic) => "gemm_mxfp8_b32",
            Self(Shared::Micro, Scaling::Static) => "gemm_mxfp8_b32_static_scaling",
        }
    }

    fn about(&self) -> &'static str {
        "GEMM of two bf16 matrices that are quantized to e4m3 first"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        allow(self.name(), spec, &[BF16], &[BF16])?;
        let (_, k, n) = size(spec);
        let (block, name) = (self.along_k(k), self.name());
        if !k.is_multiple_of(block) {
            return Err(ZooError::Shape(format!("{name}: k is {k}; expected a multiple of {block}")));
        }
        if self.0 == Shared::Block && !n.is_multiple_of(block) {
            return Err(ZooError::Shape(format!("{name}: n is {n}; expected a multiple of {block}")));
        }
        Ok(())
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, k, n) = size(spec);
        vec![Operand::normal(m, k, BF16), Operand::normal(k, n, BF16)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (m, _, n) = size(spec);
        vec![Slot::new(m, n, BF16)]
    }
}

impl Cost for GemmQuantized {
    // Quantization: comparison, division, clip and rounding per element, one division per scale.
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        let (elements, blocks) = (m * k + k * n, k / self.along_k(k));
        let scales_of_b = if self.0 == Shared::Block { n / 128 } else { n };
        let quantizing = match self.1 {
            Scaling::Dynamic => 4 * elements + blocks * (m + scales_of_b),
            Scaling::Static => 3 * elements,
        };
        let dequantizing = match self.0 {
            Shared::Line => 0,
            Shared::LineDequantized => 2 * m * n,
            Shared::Block | Shared::Micro => elements,
        };
        2 * m * k * n + quantizing + dequantizing
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        let multiplied = self.multiplied().bytes();
        let product = if multiplied == 2 { 0 } else { 3 * m * n * 4 };
        (m * k + k * n) * (4 + multiplied) + product
    }

    fn factors(&self, _: &Spec, implementation: Implementation) -> Element {
        match implementation {
            // `native` multiplies MX operands dequantized in bf16: tensor cores before Blackwell have no block-scaled
            // instructions.
            Implementation::Native if self.0 != Shared::Micro => Element::E4m3,
            _ => Element::Float(self.multiplied()),
        }
    }

    fn products(&self) -> u32 {
        1
    }
}

impl Operation for GemmQuantized {
    fn suite(&self) -> Suite {
        Suite::Gemm
    }

    fn moves(&self, spec: &Spec) -> Moves {
        match (self.0, size(spec)) {
            // A single row rotates by whole blocks of columns.
            (Shared::Block, (1, _, n)) => Moves::new(n / 128, &[Along::Nothing, Along::Columns], &[Along::Columns]),
            _ => moves(spec, &[Along::Rows], &[Along::Nothing, Along::Columns]),
        }
    }
}
