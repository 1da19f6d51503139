//! Maps dynamically quantized recipes to native kernels.

use calorimeter_kernels::{DynamicCodes, DynamicForm, Float8Sums, Prologue, SharedScale};
use calorimeter_recipes::format::{Format, Grouping, Method};
use calorimeter_recipes::{Dtype, Element, Shortcut, Treatment};

/// Returns the kernel form of a dynamically quantized linear layer for an input of `rows` rows.
///
/// Supported: dense weights with weight and input in one quantized format, or a 4-bit weight with an 8-bit input.
/// Prologue and epilogue are not part of the form. `None` if there is no such kernel.
pub fn dynamic_form(treatment: &Treatment, rows: usize) -> Option<DynamicForm> {
    let (Some(weight), Some(input), None) = (treatment.weight, treatment.input(rows), treatment.sparsity) else {
        return None;
    };
    let kind = treatment.dtype;
    let has = |(codes, shared)| {
        let (of_weight, of_input) = formats(codes, shared, kind);
        (weight == of_weight && input == of_input).then_some((codes, shared))
    };
    let known = [
        (DynamicCodes::Int8, SharedScale::Row),
        (DynamicCodes::E4m3, SharedScale::Row),
        (DynamicCodes::E4m3, SharedScale::Tensor),
        (DynamicCodes::Int4, SharedScale::Row),
        (DynamicCodes::Int4InGroups, SharedScale::Row),
    ];
    let (codes, shared) = known.into_iter().find_map(has)?;
    let sums = match treatment.shortcut {
        Some(Shortcut::FastSums) => Float8Sums::Fast,
        _ => Float8Sums::Promoted,
    };
    Some(DynamicForm { kind, codes, shared, sums, prologue: Prologue::Nothing, activation: None, added: false })
}

/// Returns the formats of weight and input that the kernels implement.
fn formats(codes: DynamicCodes, shared: SharedScale, kind: Dtype) -> (Format, Format) {
    let grouping = match shared {
        SharedScale::Row => Grouping::Row,
        SharedScale::Tensor => Grouping::Tensor,
    };
    let bytes = |scale| {
        let method = Method::Symmetric { least: -127, most: 127, epsilon: 1e-5 };
        Format::symmetric(8, grouping, kind, scale).with_method(method)
    };
    match codes {
        DynamicCodes::Int8 => {
            // For f16 the kernels hold scales, and products with inverse scales, in f32.
            let scale = if kind == Dtype::F16 { Dtype::F32 } else { kind };
            (Format::symmetric(8, grouping, kind, kind), bytes(scale))
        }
        DynamicCodes::Int4 => {
            let symmetric = |bits| Format::symmetric(bits, grouping, kind, Dtype::F32);
            (symmetric(4), symmetric(8))
        }
        DynamicCodes::Int4InGroups => {
            (Format::qqq(Grouping::Block(DynamicCodes::GROUP as u32), kind), bytes(Dtype::F32))
        }
        _ => {
            let format = Format::float8(Element::E4m3, grouping, kind);
            (format, format)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_recipes::{Recipe, Sparsity};

    #[test]
    fn dynamic_recipes_of_bytes_have_a_form_and_others_have_none() {
        let treatment = |name: &str, kind, sparsity| name.parse::<Recipe>().unwrap().treatment(kind, sparsity).unwrap();
        for kind in Dtype::ALL {
            let form = |name: &str, rows| {
                dynamic_form(&treatment(name, kind, None), rows).map(|form| (form.kind, form.codes, form.shared))
            };
            let int8 = Some((kind, DynamicCodes::Int8, SharedScale::Row));
            assert_eq!([form("int8dq", 1), form("int8dq", 8), form("int8dq_prefill_wo_decode", 2)], [int8; 3]);
            assert_eq!(form("int8dq_prefill_wo_decode", 1), None, "weight-only");
            assert_eq!(form("float8dq-row", 1), Some((kind, DynamicCodes::E4m3, SharedScale::Row)));
            assert_eq!(form("float8dq-tensor", 8), Some((kind, DynamicCodes::E4m3, SharedScale::Tensor)));
            let halves = [("int8adq-int4w-symm", DynamicCodes::Int4), ("marlin-qqq", DynamicCodes::Int4InGroups)];
            for (name, codes) in halves {
                assert_eq!(form(name, 8), Some((kind, codes, SharedScale::Row)), "{name}");
            }
            for (name, sums) in [("float8dq-row", Float8Sums::Promoted), ("float8dq-row-fast", Float8Sums::Fast)] {
                assert_eq!(dynamic_form(&treatment(name, kind, None), 8).map(|form| form.sums), Some(sums));
            }
            for other in ["baseline", "int8wo", "float8wo", "mxfp8", "nvfp4"] {
                assert_eq!(dynamic_form(&treatment(other, kind, None), 8), None, "{other}");
            }
            let semi = Some(Sparsity::SemiStructured);
            assert_eq!(dynamic_form(&treatment("int8dq", kind, semi), 8), None);
        }
    }
}
