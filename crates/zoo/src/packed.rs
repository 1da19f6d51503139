//! Maps recipes with quantized weights to native kernels.

use calorimeter_kernels::{InputFormat, PackedLinearSpec, PackedWeightFormat, ZeroPoint as PackedZeroPoint};
use calorimeter_recipes::format::{Format, Grouping, MxScaling, QuantMethod, ZeroPoint};
use calorimeter_recipes::{Element, MatmulMode, QuantConfig};

/// Returns the kernel form of a quantized weight for an input of `rows` rows.
///
/// Supported: dense weights with a float input, or with an input that is rounded in the format of the weight. `None` if
/// there is no such kernel.
pub fn packed_form(treatment: &QuantConfig, rows: usize) -> Option<PackedLinearSpec> {
    let format = treatment.weight.filter(|_| treatment.sparsity.is_none())?;
    let input = match treatment.input_format(rows) {
        None if !matches!(format.method, QuantMethod::Nvfp4) => InputFormat::Unquantized,
        Some(input) if input == format && treatment.matmul == MatmulMode::Values => match format.method {
            QuantMethod::Mx(MxScaling::Ceil) => InputFormat::Mx(format.element),
            QuantMethod::Nvfp4 => InputFormat::Nvfp4,
            _ => return None,
        },
        _ => return None,
    };
    Some(PackedLinearSpec { kind: treatment.dtype, weight: weight_codes(format)?, input })
}

/// Describes the quantized values of a format, if a value depends on its code and on scale and zero point of its group
/// only.
fn weight_codes(format: Format) -> Option<PackedWeightFormat> {
    if matches!(format.method, QuantMethod::Unquantized | QuantMethod::Qqq) || format.sparse_2to4 {
        return None;
    }
    let group = match format.grouping {
        Grouping::Row => None,
        Grouping::Block(group) => Some(group as usize),
        _ => return None,
    };
    let zero = match format.zero {
        ZeroPoint::None => PackedZeroPoint::None,
        ZeroPoint::BeforeScale(zero) => PackedZeroPoint::Integer(zero),
        ZeroPoint::AfterScale(zero) => PackedZeroPoint::Float(zero),
        _ => return None,
    };
    let known = match format.element {
        Element::Unsigned(1..=8) => zero != PackedZeroPoint::None && group.is_some(),
        Element::Signed(2..=8) | Element::E4m3 | Element::E3m2 | Element::E2m1 => zero == PackedZeroPoint::None,
        _ => false,
    };
    known.then_some(PackedWeightFormat { element: format.element, group, scale: format.scale, zero })
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_recipes::{Dtype, Recipe, Sparsity};

    fn form(name: &str, kind: Dtype, sparsity: Option<Sparsity>) -> Option<PackedLinearSpec> {
        let recipe: Recipe = name.parse().unwrap();
        packed_form(&recipe.quant_config(kind, sparsity).unwrap(), 2)
    }

    #[test]
    fn recipes_with_quantized_weights_have_a_form() {
        for recipe in Recipe::examples() {
            for kind in Dtype::ALL {
                let Ok(treatment) = recipe.quant_config(kind, None) else { continue };
                let of_codes = matches!(treatment.matmul, MatmulMode::QuantizedValues(_)) && treatment.input.is_some();
                // These recipes round inputs in another format than weights.
                let other = recipe.to_string().starts_with("int8_dynamic_activation_intx_weight");
                let expected = treatment.weight.is_some() && !of_codes && !other;
                assert_eq!(packed_form(&treatment, 2).is_some(), expected, "{recipe} {kind}");
            }
        }
        assert_eq!(form("marlin", Dtype::F16, Some(Sparsity::SemiStructured)), None);
    }

    #[test]
    fn forms_match_the_stored_format() {
        let of = |codes| Some(PackedLinearSpec::weight_only(Dtype::F16, codes));
        let form = |name: &str| form(name, Dtype::F16, None);
        assert_eq!(form("int8wo"), of(PackedWeightFormat::int8(Dtype::F16)));
        assert_eq!(form("float8wo"), of(PackedWeightFormat::e4m3()));
        assert_eq!(
            form("fp6"),
            of(PackedWeightFormat { element: Element::E3m2, ..PackedWeightFormat::int8(Dtype::F16) })
        );
        for group in [32, 64, 128, 256] {
            assert_eq!(form(&format!("int4wo-{group}")), of(PackedWeightFormat::int4(group, Dtype::F16)));
            assert_eq!(form(&format!("int4wo-{group}-hqq")), of(PackedWeightFormat::int4(group, Dtype::Bf16)));
        }
        let (half, three) = (Element::Float(Dtype::F16), Element::Unsigned(3));
        let few = |number, zero| of(PackedWeightFormat { element: number, group: Some(64), scale: half, zero });
        assert_eq!(form("uintx-3-64"), few(three, PackedZeroPoint::Integer(three)));
        assert_eq!(form("uintx-3-64-hqq"), few(three, PackedZeroPoint::Float(half)));
        assert_eq!(form("gemlitewo-4"), few(Element::Unsigned(4), PackedZeroPoint::Integer(half)));
        let nvfp4 =
            PackedLinearSpec { kind: Dtype::F16, weight: PackedWeightFormat::nvfp4(), input: InputFormat::Nvfp4 };
        assert_eq!(form("nvfp4"), Some(nvfp4));
    }
}
