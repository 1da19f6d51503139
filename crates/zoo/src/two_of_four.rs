//! Which weights of which two of every four numbers are kept `native` takes as they are stored.

use crate::dynamic::dynamic_form;
use calorimeter_kernels::{KeptCodes, Prologue, SparseForm};
use calorimeter_recipes::format::{Format, Grouping, Method};
use calorimeter_recipes::{Sparsity, Treatment};

/// The form of a layer, if its treatment of so many rows is one that `native` has: with numbers or Marlin's half bytes that stay
/// alone, or with codes that are multiplied by codes. What is before and after the layer is not part of it.
pub fn sparse_form(treatment: &Treatment, rows: usize) -> Option<SparseForm> {
    if treatment.sparsity != Some(Sparsity::SemiStructured) || treatment.shortcut.is_some() {
        return None;
    }
    let kind = treatment.dtype;
    let codes = match (treatment.weight, treatment.input(rows)) {
        (None, None) => KeptCodes::Numbers,
        (Some(weight), None) => {
            let method = Method::Symmetric { least: -8, most: 7, epsilon: 1e-6 };
            let marlin = Format::symmetric(4, Grouping::Block(128), kind, kind).with_method(method);
            (weight == marlin).then_some(KeptCodes::Int4)?
        }
        _ => {
            let form = dynamic_form(&Treatment { sparsity: None, ..*treatment }, rows)?;
            (!form.codes.are_halves()).then_some(KeptCodes::Dynamic(form.codes, form.shared))?
        }
    };
    Some(SparseForm { kind, codes, prologue: Prologue::Nothing, activation: None, added: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_kernels::{DynamicCodes, SharedScale};
    use calorimeter_recipes::{Dtype, Recipe};

    #[test]
    fn every_recipe_that_takes_semi_structured_sparsity_has_a_form() {
        let semi = Some(Sparsity::SemiStructured);
        for kind in Dtype::ALL {
            let codes = |name: &str| {
                let treatment = name.parse::<Recipe>().unwrap().treatment(kind, semi).unwrap();
                sparse_form(&treatment, 8).map(|form| form.codes)
            };
            let dynamic = |codes, shared| Some(KeptCodes::Dynamic(codes, shared));
            assert_eq!(codes("baseline"), Some(KeptCodes::Numbers));
            assert_eq!(codes("marlin"), Some(KeptCodes::Int4));
            assert_eq!(codes("int8dq"), dynamic(DynamicCodes::Int8, SharedScale::Row));
            assert_eq!(codes("float8dq-row"), dynamic(DynamicCodes::E4m3, SharedScale::Row));
            assert_eq!(codes("float8dq-tensor"), dynamic(DynamicCodes::E4m3, SharedScale::Tensor));
            for recipe in Recipe::typical().into_iter().filter(Recipe::takes_semi_structured) {
                assert!(codes(&recipe.to_string()).is_some(), "{recipe}");
            }
            let dense = Recipe::BASELINE.treatment(kind, None).unwrap();
            assert_eq!(sparse_form(&dense, 8), None);
        }
    }
}
