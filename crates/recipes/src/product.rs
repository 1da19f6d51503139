//! Which stored weights a kernel of ours multiplies as they are, on GPUs.

use crate::format::{Format, Grouping, Method, Zero};
use crate::packing::BLOCK;
use crate::{Element, Products, RecipeError, Treatment};

impl Format {
    /// Whether there is a kernel for products with weights that are stored so: a number for each code, groups that begin
    /// where words do, and a single level of scales.
    pub fn has_product(&self) -> bool {
        let groups = match self.grouping {
            Grouping::Row => true,
            Grouping::Block(group) => group.is_multiple_of(BLOCK as u32) || group == 16,
            Grouping::Tensor => false,
        };
        let levels = !matches!(self.method, Method::Plain | Method::Qqq | Method::Nvfp4);
        groups && levels && !self.two_of_four && !self.rounds_to_integers()
    }

    /// Whether there is a kernel for products of two tensors whose codes are such: signed bytes under a scale for each row.
    pub fn has_code_product(&self) -> bool {
        self.element == Element::Signed(8)
            && self.grouping == Grouping::Row
            && self.zero == Zero::None
            && !self.two_of_four
            && !self.rounds_to_integers()
    }
}

impl Treatment {
    /// The most rows of an input that a kernel takes on a device without matrix instructions; for more, unpacking the weight
    /// once is less work.
    pub const MOST_PRODUCT_ROWS: usize = 64;

    /// Whether a kernel of ours multiplies the weight as it is stored with an input of so many rows; the error says what it
    /// does.
    pub fn has_product(&self, rows: usize) -> Result<(), RecipeError> {
        let taken = match (self.weight, self.input(rows)) {
            (Some(weight), None) => weight.has_product(),
            (Some(weight), Some(input)) => {
                let both = weight.has_code_product() && input.has_code_product();
                both && matches!(self.products, Products::Codes(_))
            }
            (None, _) => false,
        };
        if taken && self.sparsity.is_none() {
            return Ok(());
        }
        Err(RecipeError::Unsupported(
            "CubeCL kernels of stored weights take quantized ones, not pruned, whose input is left as it is or both in codes of \
             8-bit integers"
                .into(),
        ))
    }
}
