//! Maps recipes with quantized weights to native kernels.

use calorimeter_kernels::{CodeZero, InputNumbers, PackedForm, WeightCodes};
use calorimeter_recipes::format::{Format, Grouping, Method, MxScaling, Zero};
use calorimeter_recipes::{Element, Products, Treatment};

/// Returns the kernel form of a quantized weight for an input of `rows` rows.
///
/// Supported: dense weights with a float input, or with an input that is rounded in the format of the weight. `None` if
/// there is no such kernel.
pub fn packed_form(treatment: &Treatment, rows: usize) -> Option<PackedForm> {
    let format = treatment.weight.filter(|_| treatment.sparsity.is_none())?;
    let input = match treatment.input(rows) {
        None if !matches!(format.method, Method::Nvfp4) => InputNumbers::AsTheyAre,
        Some(input) if input == format && treatment.products == Products::Numbers => match format.method {
            Method::Mx(MxScaling::Ceil) => InputNumbers::Mx(format.element),
            Method::Nvfp4 => InputNumbers::Nvfp4,
            _ => return None,
        },
        _ => return None,
    };
    Some(PackedForm { kind: treatment.dtype, codes: codes(format)?, input })
}

/// Describes the quantized values of a format, if a value depends on its code and on scale and zero point of its group
/// only.
fn codes(format: Format) -> Option<WeightCodes> {
    if matches!(format.method, Method::Plain | Method::Qqq) || format.two_of_four {
        return None;
    }
    let group = match format.grouping {
        Grouping::Row => None,
        Grouping::Block(group) => Some(group as usize),
        _ => return None,
    };
    let zero = match format.zero {
        Zero::None => CodeZero::Nothing,
        Zero::InSteps(zero) => CodeZero::InSteps(zero),
        Zero::InUnits(zero) => CodeZero::InUnits(zero),
        _ => return None,
    };
    let known = match format.element {
        Element::Unsigned(1..=8) => zero != CodeZero::Nothing && group.is_some(),
        Element::Signed(2..=8) | Element::E4m3 | Element::E3m2 | Element::E2m1 => zero == CodeZero::Nothing,
        _ => false,
    };
    known.then_some(WeightCodes { number: format.element, group, scale: format.scale, zero })
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_recipes::{Dtype, Recipe, Sparsity};

    fn form(name: &str, kind: Dtype, sparsity: Option<Sparsity>) -> Option<PackedForm> {
        let recipe: Recipe = name.parse().unwrap();
        packed_form(&recipe.treatment(kind, sparsity).unwrap(), 2)
    }

    #[test]
    fn every_recipe_whose_numbers_are_multiplied_has_a_form_and_others_have_none() {
        for recipe in Recipe::typical() {
            for kind in Dtype::ALL {
                let Ok(treatment) = recipe.treatment(kind, None) else { continue };
                let of_codes = matches!(treatment.products, Products::Codes(_)) && treatment.input.is_some();
                // These recipes round inputs in another format than weights.
                let other = recipe.to_string().starts_with("int8_dynamic_activation_intx_weight");
                let expected = treatment.weight.is_some() && !of_codes && !other;
                assert_eq!(packed_form(&treatment, 2).is_some(), expected, "{recipe} {kind}");
            }
        }
        assert_eq!(form("marlin", Dtype::F16, Some(Sparsity::SemiStructured)), None);
    }

    #[test]
    fn codes_scales_and_zeros_are_those_that_the_recipe_stores() {
        let of = |codes| Some(PackedForm::weight_only(Dtype::F16, codes));
        let form = |name: &str| form(name, Dtype::F16, None);
        assert_eq!(form("int8wo"), of(WeightCodes::int8(Dtype::F16)));
        assert_eq!(form("float8wo"), of(WeightCodes::e4m3()));
        assert_eq!(form("fp6"), of(WeightCodes { number: Element::E3m2, ..WeightCodes::int8(Dtype::F16) }));
        for group in [32, 64, 128, 256] {
            assert_eq!(form(&format!("int4wo-{group}")), of(WeightCodes::int4(group, Dtype::F16)));
            assert_eq!(form(&format!("int4wo-{group}-hqq")), of(WeightCodes::int4(group, Dtype::Bf16)));
        }
        let (half, three) = (Element::Float(Dtype::F16), Element::Unsigned(3));
        let few = |number, zero| of(WeightCodes { number, group: Some(64), scale: half, zero });
        assert_eq!(form("uintx-3-64"), few(three, CodeZero::InSteps(three)));
        assert_eq!(form("uintx-3-64-hqq"), few(three, CodeZero::InUnits(half)));
        assert_eq!(form("gemlitewo-4"), few(Element::Unsigned(4), CodeZero::InSteps(half)));
        let nvfp4 = PackedForm { kind: Dtype::F16, codes: WeightCodes::nvfp4(), input: InputNumbers::Nvfp4 };
        assert_eq!(form("nvfp4"), Some(nvfp4));
    }
}
