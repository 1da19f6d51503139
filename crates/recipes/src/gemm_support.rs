//! Formats for which GPUs have GEMM kernels on packed weights.

use crate::format::{Format, Grouping, QuantMethod, ZeroPoint};
use crate::packing::BLOCK;
use crate::{Element, MatmulMode, QuantConfig, RecipeError};

/// True if a GEMM kernel dequantizes weights of this format: no 2:4 sparsity, word-aligned groups, and a single level of
/// scales.
pub fn has_dequant_gemm(format: &Format) -> bool {
    let groups = match format.grouping {
        Grouping::Row => true,
        Grouping::Block(group) => group.is_multiple_of(BLOCK as u32) || group == 16,
        Grouping::Tensor => false,
    };
    let levels = !matches!(format.method, QuantMethod::Unquantized | QuantMethod::Qqq | QuantMethod::Nvfp4);
    groups && levels && !format.sparse_2to4 && !format.rounds_to_int8()
}

/// True if an int8 GEMM kernel multiplies tensors of this format: int8 values with one scale per row.
pub fn has_int8_gemm(format: &Format) -> bool {
    format.element == Element::Signed(8)
        && format.grouping == Grouping::Row
        && format.zero == ZeroPoint::None
        && !format.sparse_2to4
        && !format.rounds_to_int8()
}

impl QuantConfig {
    /// Maximum input rows of a kernel on devices without matrix instructions; for more rows, dequantizing the weight
    /// once is cheaper.
    pub const MAX_SIMT_GEMM_ROWS: usize = 64;

    /// Checks that a GEMM kernel takes the packed weight with an input of `rows` rows; the error lists what is
    /// supported.
    pub fn check_packed_gemm(&self, rows: usize) -> Result<(), RecipeError> {
        let supported = match (self.weight, self.input_format(rows)) {
            (Some(weight), None) => has_dequant_gemm(&weight),
            (Some(weight), Some(input)) => {
                let both = has_int8_gemm(&weight) && has_int8_gemm(&input);
                both && matches!(self.matmul, MatmulMode::QuantizedValues(_))
            }
            (None, _) => false,
        };
        if supported && self.sparsity.is_none() {
            return Ok(());
        }
        Err(RecipeError::Unsupported(
            "no CubeCL GEMM kernel: expected a quantized, dense weight, with an unquantized input or with weight and input in int8"
                .into(),
        ))
    }
}
