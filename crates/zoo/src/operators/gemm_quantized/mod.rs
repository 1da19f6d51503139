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
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::operators::dtypes::{BF16, check_dtypes};
use crate::operators::matmul::{AXES, check_float8_alignment, set_rotation, size};
use crate::registry::table::Zoo;
use crate::{
    Cost, Implementation, Operand, Operation, OutputSlot, RotationAxis, SetRotation, Signature, Spec, Suite, ZooError,
};
use calorimeter_recipes::{Dtype, Element};

/// Elements that share a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fp8Granularity {
    /// A row of A, a column of B; the output stays in units of the scales.
    RowColumn,
    /// A row of A, a column of B; the output is multiplied by both scales.
    RowColumnDequantized,
    /// 128 elements of A along k, 128 x 128 elements of B.
    Block128,
    /// 32 elements along k in both operands.
    Mx32,
}

/// Origin of the scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ScaleMode {
    /// Amax of the elements that share the scale.
    Dynamic,
    /// Constant 0.5, which maps 224 to 448, the largest e4m3 value.
    Static,
}

/// GEMM with quantized operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GemmQuantized(Fp8Granularity, ScaleMode);

impl GemmQuantized {
    /// Operators with one scale per row of A and column of B.
    pub const ROWWISE: [Self; 3] = [
        Self(Fp8Granularity::RowColumn, ScaleMode::Dynamic),
        Self(Fp8Granularity::RowColumnDequantized, ScaleMode::Dynamic),
        Self(Fp8Granularity::RowColumn, ScaleMode::Static),
    ];

    /// Operators with scales per block.
    pub const BLOCKWISE: [Self; 4] = [
        Self(Fp8Granularity::Block128, ScaleMode::Dynamic),
        Self(Fp8Granularity::Block128, ScaleMode::Static),
        Self(Fp8Granularity::Mx32, ScaleMode::Dynamic),
        Self(Fp8Granularity::Mx32, ScaleMode::Static),
    ];

    /// Checks the alignment that cuBLASLt requires; block scales come in groups of four rows.
    fn check_native(&self, spec: &Spec) -> Result<(), String> {
        match (self.0, size(spec)) {
            (Fp8Granularity::RowColumn | Fp8Granularity::RowColumnDequantized, _) => check_float8_alignment(spec),
            (Fp8Granularity::Block128, (m, ..)) if !m.is_multiple_of(4) => Err(format!(
                "`native` multiplies block-scaled e4m3 by cuBLASLt, which requires m in multiples of 4; m is {m}"
            )),
            (Fp8Granularity::Block128 | Fp8Granularity::Mx32, _) => Ok(()),
        }
    }

    /// Elements along k that share a scale.
    fn block_k(self, k: u64) -> u64 {
        match self.0 {
            Fp8Granularity::RowColumn | Fp8Granularity::RowColumnDequantized => k,
            Fp8Granularity::Block128 => 128,
            Fp8Granularity::Mx32 => 32,
        }
    }

    /// Dtype that burn multiplies in and rounds the product to.
    fn burn_dtype(self) -> Dtype {
        match self {
            // e4m3 values, also times a power of two, are exact in bf16.
            Self(Fp8Granularity::RowColumn | Fp8Granularity::Mx32, _) | Self(_, ScaleMode::Static) => Dtype::Bf16,
            _ => Dtype::F32,
        }
    }

    fn precision(self) -> Dtype {
        match self.0 {
            Fp8Granularity::RowColumn | Fp8Granularity::RowColumnDequantized => Dtype::Bf16,
            Fp8Granularity::Block128 | Fp8Granularity::Mx32 => Dtype::F32,
        }
    }
}

/// Registers the quantized GEMM operators with their implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators(GemmQuantized::ROWWISE).burn().native_where(GemmQuantized::check_native);
    zoo.operators(GemmQuantized::BLOCKWISE).burn().native_where(GemmQuantized::check_native);
}

impl Signature for GemmQuantized {
    fn name(&self) -> &'static str {
        match self {
            Self(Fp8Granularity::RowColumn, ScaleMode::Dynamic) => "gemm_fp8_rowwise",
            Self(Fp8Granularity::RowColumn, ScaleMode::Static) => "gemm_fp8_rowwise_static_scaling",
            Self(Fp8Granularity::RowColumnDequantized, _) => "gemm_fp8_rowwise_w_dequantize",
            Self(Fp8Granularity::Block128, ScaleMode::Dynamic) => "gemm_fp8_b128_fp32",
            Self(Fp8Granularity::Block128, ScaleMode::Static) => "gemm_fp8_b128_fp32_static_scaling",
            Self(Fp8Granularity::Mx32, ScaleMode::Dynamic) => "gemm_mxfp8_b32",
            Self(Fp8Granularity::Mx32, ScaleMode::Static) => "gemm_mxfp8_b32_static_scaling",
        }
    }

    fn description(&self) -> &'static str {
        "GEMM of two bf16 matrices that are quantized to e4m3 first"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        check_dtypes(self.name(), spec, &[BF16], &[BF16])?;
        let (_, k, n) = size(spec);
        let (block, name) = (self.block_k(k), self.name());
        if !k.is_multiple_of(block) {
            return Err(ZooError::Shape(format!("{name}: k is {k}; expected a multiple of {block}")));
        }
        if self.0 == Fp8Granularity::Block128 && !n.is_multiple_of(block) {
            return Err(ZooError::Shape(format!("{name}: n is {n}; expected a multiple of {block}")));
        }
        Ok(())
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, k, n) = size(spec);
        vec![Operand::normal(m, k, BF16), Operand::normal(k, n, BF16)]
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        let (m, _, n) = size(spec);
        vec![OutputSlot::new(m, n, BF16)]
    }
}

impl Cost for GemmQuantized {
    // Quantization: comparison, division, clip and rounding per element, one division per scale.
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        let (elements, blocks) = (m * k + k * n, k / self.block_k(k));
        let scales_of_b = if self.0 == Fp8Granularity::Block128 { n / 128 } else { n };
        let quantizing = match self.1 {
            ScaleMode::Dynamic => 4 * elements + blocks * (m + scales_of_b),
            ScaleMode::Static => 3 * elements,
        };
        let dequantizing = match self.0 {
            Fp8Granularity::RowColumn => 0,
            Fp8Granularity::RowColumnDequantized => 2 * m * n,
            Fp8Granularity::Block128 | Fp8Granularity::Mx32 => elements,
        };
        2 * m * k * n + quantizing + dequantizing
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        let multiplied = self.burn_dtype().bytes();
        let product = if multiplied == 2 { 0 } else { 3 * m * n * 4 };
        (m * k + k * n) * (4 + multiplied) + product
    }

    fn matmul_element(&self, _: &Spec, implementation: Implementation) -> Element {
        match implementation {
            // `native` multiplies MX operands dequantized in bf16: tensor cores before Blackwell have no block-scaled
            // instructions.
            Implementation::Native if self.0 == Fp8Granularity::Mx32 => Element::Float(self.burn_dtype()),
            burn if burn.uses_burn() => Element::Float(self.burn_dtype()),
            _ => Element::E4m3,
        }
    }

    fn matmuls(&self) -> u32 {
        1
    }
}

impl Operation for GemmQuantized {
    fn suite(&self) -> Suite {
        Suite::Gemm
    }

    fn set_rotation(&self, spec: &Spec) -> SetRotation {
        match (self.0, size(spec)) {
            // A single row rotates by whole blocks of columns.
            (Fp8Granularity::Block128, (1, _, n)) => {
                SetRotation::new(n / 128, &[RotationAxis::Fixed, RotationAxis::Columns], &[RotationAxis::Columns])
            }
            _ => set_rotation(spec, &[RotationAxis::Rows], &[RotationAxis::Fixed, RotationAxis::Columns]),
        }
    }
}
