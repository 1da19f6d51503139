//! `float8dq[-tensor|-row][-fast]`: 8-bit float weights and activations, scales of the activations found as they come.
//!
//! Bare it is `-tensor`: one scale for the whole weight and one for the whole activation; `-row` has one for each output
//! channel and each token. Every scale is amax over the format's largest number, as in `float8wo`. Both are e4m3; with
//! semi-structured sparsity the weight is e4m3 and the activation e5m2, always by rows. The product of the codes is
//! multiplied with the activation's scale, then with the weight's, in f32, and rounded once. With `-fast`, which is torch's
//! usual way, products of codes may be added up in the registers of tensor cores instead of in f32.

use crate::format::{Format, Grouping};
use crate::{Dtype, Element, Family, Products, RecipeError, Scheme, Shortcut, Sparsity, TrainingRecipe, Treatment};
use std::fmt;

/// Float8 dynamic quantization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Float8Dynamic {
    /// What shares a scale.
    pub scaling: Float8Scaling,
    /// Whether sums may stay in the registers of tensor cores.
    pub fast: bool,
}

/// What shares a scale of float8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Float8Scaling {
    /// A tensor.
    Tensor,
    /// A row.
    Row,
}

/// Behind the name of a recipe whose sums may be fast.
const FAST: &str = "-fast";

impl fmt::Display for Float8Dynamic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match (self.scaling, self.fast) {
            (Float8Scaling::Tensor, false) => "float8dq-tensor",
            (Float8Scaling::Tensor, true) => "float8dq-tensor-fast",
            (Float8Scaling::Row, false) => "float8dq-row",
            (Float8Scaling::Row, true) => "float8dq-row-fast",
        })
    }
}

/// Its names.
pub static FAMILY: Family = Family {
    spellings: &["float8dq[-tensor|-row][-fast]"],
    about: "8-bit float weights and activations, a scale per tensor (bare: this) or per row; fast: coarser sums",
    typical: &["float8dq-tensor", "float8dq-row"],
    parse: |name| Some(Box::new(Float8Dynamic::parse(name)?)),
};

impl Float8Dynamic {
    /// Reads exactly one of its names.
    pub fn parse(name: &str) -> Option<Self> {
        let (scaled, fast) = name.strip_suffix(FAST).map_or((name, false), |scaled| (scaled, true));
        let scaling = match scaled {
            "float8dq" | "float8dq-tensor" => Float8Scaling::Tensor,
            "float8dq-row" => Float8Scaling::Row,
            // Its name in torchao's accuracy tables.
            "float8_rowwise" if !fast => Float8Scaling::Row,
            _ => return None,
        };
        Some(Self { scaling, fast })
    }
}

impl Scheme for Float8Dynamic {
    fn takes_semi_structured(&self) -> bool {
        !self.fast
    }

    fn treatment(&self, dtype: Dtype, sparsity: Option<Sparsity>) -> Result<Treatment, RecipeError> {
        if let (Some(sparsity), true) = (sparsity, self.fast) {
            return Err(RecipeError::Unsupported(format!(
                "{self} with {sparsity}: sums in the registers of tensor cores are for dense weights; without {FAST} it runs"
            )));
        }
        let (input, grouping) = match (sparsity, self.scaling) {
            (Some(Sparsity::SemiStructured), _) => (Element::E5m2, Grouping::Row),
            (_, Float8Scaling::Tensor) => (Element::E4m3, Grouping::Tensor),
            (_, Float8Scaling::Row) => (Element::E4m3, Grouping::Row),
        };
        let format = |element| Format::float8(element, grouping, dtype);
        let treatment = Treatment::dynamic(dtype, format(Element::E4m3), format(input), Products::Codes(Dtype::F32));
        Ok(Treatment { shortcut: self.fast.then_some(Shortcut::FastSums), ..treatment })
    }

    fn training(&self) -> Result<Option<TrainingRecipe>, RecipeError> {
        let promoted = match self.scaling {
            Float8Scaling::Tensor => TrainingRecipe::TENSORWISE,
            Float8Scaling::Row => TrainingRecipe::ROWWISE,
        };
        Ok(if self.fast { promoted.fast() } else { Some(promoted) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparsity_makes_it_go_by_rows_with_wider_activations() {
        let recipe = Float8Dynamic::parse("float8dq").unwrap();
        let treatment = recipe.treatment(Dtype::Bf16, Some(Sparsity::SemiStructured)).unwrap();
        let (weight, input) = (treatment.weight.unwrap(), treatment.input.unwrap());
        assert_eq!((weight.element, weight.grouping), (Element::E4m3, Grouping::Row));
        assert_eq!((input.element, input.grouping), (Element::E5m2, Grouping::Row));
    }

    #[test]
    fn fast_sums_are_of_the_same_codes_and_a_name_of_their_own() {
        for name in ["float8dq-tensor", "float8dq-row"] {
            let treatment = |name: &str| {
                let recipe = Float8Dynamic::parse(name).unwrap();
                assert_eq!(recipe.to_string(), name);
                (recipe.treatment(Dtype::Bf16, None).unwrap(), recipe.training().unwrap().unwrap())
            };
            let ((promoted, trained), (fast, trained_fast)) = (treatment(name), treatment(&format!("{name}-fast")));
            assert_eq!((promoted.shortcut, fast.shortcut), (None, Some(Shortcut::FastSums)));
            assert_eq!(Treatment { shortcut: None, ..fast }, promoted);
            assert_eq!(trained_fast, trained.fast().unwrap());
        }
        let fast = Float8Dynamic::parse("float8dq-fast").unwrap();
        assert_eq!(fast.to_string(), "float8dq-tensor-fast");
        assert!(fast.treatment(Dtype::Bf16, Some(Sparsity::SemiStructured)).is_err());
        assert_eq!(Float8Dynamic::parse("float8_rowwise-fast"), None);
    }
}
