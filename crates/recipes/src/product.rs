//! Formats for which GPUs have GEMM kernels on packed weights.

use crate::format::{Format, Grouping, Method, Zero};
use crate::packing::BLOCK;
use crate::{Element, Products, RecipeError, Treatment};

impl Format {
    /// True if a GEMM kernel dequantizes weights of this format: no 2:4 sparsity, word-aligned groups, and a single
    /// level of scales.
    pub fn has_product(&self) -> bool {
        let groups = match self.grouping {
            Grouping::Row => true,
            Grouping::Block(group) => group.is_multiple_of(BLOCK as u32) || group == 16,
            Grouping::Tensor => false,
        };
        let levels = !matches!(self.method, Method::Plain | Method::Qqq | Method::Nvfp4);
        groups && levels && !self.two_of_four && !self.rounds_to_integers()
    }

    /// True if an int8 GEMM kernel multiplies tensors of this format: int8 values with one scale per row.
    pub fn has_code_product(&self) -> bool {
        self.element == Element::Signed(8)
            && self.grouping == Grouping::Row
            && self.zero == Zero::None
            && !self.two_of_four
            && !self.rounds_to_integers()
    }
}

impl Treatment {
    /// Maximum input rows of a kernel on devices without matrix instructions; for more rows, dequantizing the weight
    /// once is cheaper.
    pub const MOST_PRODUCT_ROWS: usize = 64;

    /// Checks that a GEMM kernel takes the packed weight with an input of `rows` rows; the error lists what is
    /// supported.
    pub fn has_product(&self, rows: usize) -> Result<(), RecipeError> {
        let supported = match (self.weight, self.input(rows)) {
            (Some(weight), None) => weight.has_product(),
            (Some(weight), Some(input)) => {
                let both = weight.has_code_product() && input.has_code_product();
                both && matches!(self.products, Products::Codes(_))
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
