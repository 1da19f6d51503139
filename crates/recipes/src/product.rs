//! Which stored weights a kernel of ours multiplies as they are, on GPUs.

use crate::format::{Format, Grouping, Method};
use crate::packing::BLOCK;
use crate::{RecipeError, Treatment};

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
}

impl Treatment {
    /// The most rows of an input that a kernel takes; for more, unpacking the weight once is less work.
    pub const MOST_PRODUCT_ROWS: usize = 64;

    /// Whether a kernel of ours multiplies the weight as it is stored with an input of so many rows; the error says which
    /// it does.
    pub fn has_product(&self, rows: usize) -> Result<(), RecipeError> {
        let most = Self::MOST_PRODUCT_ROWS;
        match self.weight {
            Some(_) if rows > most => Err(RecipeError::Unsupported(format!(
                "CubeCL kernels of stored weights take up to {most} rows, not {rows}"
            ))),
            Some(format) if self.sparsity.is_none() && self.input(rows).is_none() && format.has_product() => Ok(()),
            _ => Err(RecipeError::Unsupported(
                "CubeCL kernels of stored weights take quantised ones whose input is left as it is, not pruned".into(),
            )),
        }
    }
}
