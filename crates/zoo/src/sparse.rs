//! Maps recipes with 2:4 sparse weights to native kernels.

use crate::dynamic::dynamic_form;
use calorimeter_kernels::{Prologue, SparseLinearSpec, SparseWeightFormat};
use calorimeter_recipes::format::{Format, Grouping, QuantMethod};
use calorimeter_recipes::{QuantConfig, Sparsity};

/// Returns the kernel form of a 2:4 sparse linear layer for an input of `rows` rows.
///
/// Supported: float weights, Marlin's int4 weights, and int8 or float8 weights with dynamically quantized inputs.
/// Prologue and epilogue are not part of the form. `None` if there is no such kernel.
pub fn sparse_form(treatment: &QuantConfig, rows: usize) -> Option<SparseLinearSpec> {
    if treatment.sparsity != Some(Sparsity::SemiStructured) || treatment.precision_hint.is_some() {
        return None;
    }
    let kind = treatment.dtype;
    let codes = match (treatment.weight, treatment.input_format(rows)) {
        (None, None) => SparseWeightFormat::Float,
        (Some(weight), None) => {
            let method = QuantMethod::Symmetric { min: -8, max: 7, epsilon: 1e-6 };
            let marlin = Format::symmetric(4, Grouping::Block(128), kind, kind).with_method(method);
            (weight == marlin).then_some(SparseWeightFormat::Int4)?
        }
        _ => {
            let form = dynamic_form(&QuantConfig { sparsity: None, ..*treatment }, rows)?;
            (!form.format.is_int4()).then_some(SparseWeightFormat::Dynamic(form.format, form.granularity))?
        }
    };
    Some(SparseLinearSpec { kind, weight: codes, prologue: Prologue::None, activation: None, has_addend: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_kernels::{DynamicFormat, ScaleGranularity};
    use calorimeter_recipes::{Dtype, Recipe};

    #[test]
    fn sparse_recipes_have_a_form_except_e5m2() {
        let semi = Some(Sparsity::SemiStructured);
        for kind in Dtype::ALL {
            let codes = |name: &str| {
                let treatment = name.parse::<Recipe>().unwrap().quant_config(kind, semi).unwrap();
                sparse_form(&treatment, 8).map(|form| form.weight)
            };
            let dynamic = |codes, shared| Some(SparseWeightFormat::Dynamic(codes, shared));
            assert_eq!(codes("baseline"), Some(SparseWeightFormat::Float));
            assert_eq!(codes("marlin"), Some(SparseWeightFormat::Int4));
            assert_eq!(codes("int8dq"), dynamic(DynamicFormat::Int8, ScaleGranularity::Row));
            for e5m2 in ["float8dq-row", "float8dq-tensor"] {
                assert_eq!(codes(e5m2), None, "{e5m2}");
            }
            let dense = Recipe::BASELINE.quant_config(kind, None).unwrap();
            assert_eq!(sparse_form(&dense, 8), None);
        }
    }
}
