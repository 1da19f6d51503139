//! Maps recipes with 2:4 sparse weights to native kernels.

use crate::dynamic::dynamic_form;
use calorimeter_kernels::{KeptCodes, Prologue, SparseForm};
use calorimeter_recipes::format::{Format, Grouping, Method};
use calorimeter_recipes::{Sparsity, Treatment};

/// Returns the kernel form of a 2:4 sparse linear layer for an input of `rows` rows.
///
/// Supported: float weights, Marlin's int4 weights, and int8 or float8 weights with dynamically quantized inputs.
/// Prologue and epilogue are not part of the form. `None` if there is no such kernel.
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
    fn recipes_with_two_of_four_have_a_form_unless_their_inputs_are_e5m2() {
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
            for e5m2 in ["float8dq-row", "float8dq-tensor"] {
                assert_eq!(codes(e5m2), None, "{e5m2}");
            }
            let dense = Recipe::BASELINE.treatment(kind, None).unwrap();
            assert_eq!(sparse_form(&dense, 8), None);
        }
    }
}
