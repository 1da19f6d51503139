//! Which weights of recipes kernels take as they are stored.

use calorimeter_kernels::{PackedForm, WeightCodes};
use calorimeter_recipes::format::{Format, Grouping, Method, Zero};
use calorimeter_recipes::{Element, Treatment};

/// The form of a layer's weight, if its treatment of so many rows is one that `native` has a kernel for: a quantised
/// weight, dense and alone, in codes that [`WeightCodes`] knows.
pub fn packed_form(treatment: &Treatment, rows: usize) -> Option<PackedForm> {
    let format = treatment.weight.filter(|_| treatment.input(rows).is_none() && treatment.sparsity.is_none())?;
    let Format { scale: Element::Float(scale), two_of_four: false, .. } = format else { return None };
    let codes = match (format.element, format.method, format.grouping, format.zero) {
        (Element::Signed(8), Method::Symmetric { .. }, Grouping::Row, Zero::None) => WeightCodes::Int8,
        (Element::E4m3, Method::Floats { .. }, Grouping::Row, Zero::None) => WeightCodes::E4m3,
        (Element::Unsigned(4), _, Grouping::Block(group), Zero::InUnits(zero))
            if zero == format.scale && group.is_multiple_of(32) =>
        {
            WeightCodes::Int4 { group: group as usize }
        }
        _ => return None,
    };
    Some(PackedForm { kind: treatment.dtype, codes, scale })
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_recipes::{Dtype, Recipe, Sparsity};

    #[test]
    fn weight_only_recipes_of_bytes_and_of_tinygemms_halves_have_a_form() {
        let form = |name: &str, sparsity| {
            packed_form(&name.parse::<Recipe>().unwrap().treatment(Dtype::F16, sparsity).unwrap(), 2)
        };
        let of = |codes, scale| Some(PackedForm { kind: Dtype::F16, codes, scale });
        assert_eq!(form("int8wo", None), of(WeightCodes::Int8, Dtype::F16));
        assert_eq!(form("float8wo", None), of(WeightCodes::E4m3, Dtype::F32));
        for group in [32, 64, 128, 256] {
            let codes = WeightCodes::Int4 { group };
            assert_eq!(form(&format!("int4wo-{group}"), None), of(codes, Dtype::F16));
            assert_eq!(form(&format!("int4wo-{group}-hqq"), None), of(codes, Dtype::Bf16));
        }
        for other in ["baseline", "int8dq", "float8dq-row", "uintx-4-64", "gemlitewo-4", "fp6", "nvfp4"] {
            assert_eq!(form(other, None), None, "{other}");
        }
        assert_eq!(form("marlin", Some(Sparsity::SemiStructured)), None);
    }
}
