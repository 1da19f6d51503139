//! `float8dq[-tensor|-row]`: 8-bit float weights and activations, scales of the activations found as they come.
//!
//! Bare it is `-tensor`: one scale for the whole weight and one for the whole activation; `-row` has one for each output
//! channel and each token. Every scale is amax over the format's largest number, as in `float8wo`. Both are e4m3; with
//! semi-structured sparsity the weight is e4m3 and the activation e5m2, always by rows. The product of the codes is
//! multiplied with the activation's scale, then with the weight's, in f32, and rounded once.

use crate::format::{Format, Grouping};
use crate::{Dtype, Element, Family, Products, RecipeError, Scheme, Sparsity, TrainingRecipe, Treatment};
use std::fmt;

/// Float8 dynamic quantisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Float8Dynamic {
    /// One scale for a tensor.
    Tensor,
    /// One scale for a row.
    Row,
}

impl fmt::Display for Float8Dynamic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tensor => "float8dq-tensor",
            Self::Row => "float8dq-row",
        })
    }
}

/// Its names.
pub static FAMILY: Family = Family {
    spellings: &["float8dq[-tensor|-row]"],
    about: "8-bit float weights and activations, a scale per tensor (bare: this) or per row",
    typical: &["float8dq-tensor", "float8dq-row"],
    parse: |name| Some(Box::new(Float8Dynamic::parse(name)?)),
};

impl Float8Dynamic {
    /// Reads exactly one of its names.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "float8dq" | "float8dq-tensor" => Some(Self::Tensor),
            // The second is its name in torchao's accuracy tables.
            "float8dq-row" | "float8_rowwise" => Some(Self::Row),
            _ => None,
        }
    }
}

impl Scheme for Float8Dynamic {
    fn takes_semi_structured(&self) -> bool {
        true
    }

    fn treatment(&self, dtype: Dtype, sparsity: Option<Sparsity>) -> Result<Treatment, RecipeError> {
        let (input, grouping) = match (sparsity, self) {
            (Some(Sparsity::SemiStructured), _) => (Element::E5m2, Grouping::Row),
            (_, Self::Tensor) => (Element::E4m3, Grouping::Tensor),
            (_, Self::Row) => (Element::E4m3, Grouping::Row),
        };
        let format = |element| Format::float8(element, grouping, dtype);
        Ok(Treatment::dynamic(dtype, format(Element::E4m3), format(input), Products::Codes(Dtype::F32)))
    }

    fn training(&self) -> Result<Option<TrainingRecipe>, RecipeError> {
        Ok(Some(match self {
            Self::Tensor => TrainingRecipe::TENSORWISE,
            Self::Row => TrainingRecipe::ROWWISE,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparsity_makes_it_go_by_rows_with_wider_activations() {
        let treatment = Float8Dynamic::Tensor.treatment(Dtype::Bf16, Some(Sparsity::SemiStructured)).unwrap();
        let (weight, input) = (treatment.weight.unwrap(), treatment.input.unwrap());
        assert_eq!((weight.element, weight.grouping), (Element::E4m3, Grouping::Row));
        assert_eq!((input.element, input.grouping), (Element::E5m2, Grouping::Row));
    }
}
