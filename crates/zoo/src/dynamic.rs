//! Maps dynamically quantized recipes to native kernels.

use calorimeter_kernels::{DynamicFormat, DynamicLinearSpec, Float8Accumulation, Prologue, ScaleGranularity};
use calorimeter_recipes::format::{Format, Grouping, QuantMethod};
use calorimeter_recipes::{Dtype, Element, PrecisionHint, QuantConfig};

/// Returns the kernel form of a dynamically quantized linear layer for an input of `rows` rows.
///
/// Supported: dense weights with weight and input in one quantized format, or a 4-bit weight with an 8-bit input.
/// Prologue and epilogue are not part of the form. `None` if there is no such kernel.
pub fn dynamic_form(treatment: &QuantConfig, rows: usize) -> Option<DynamicLinearSpec> {
    let (Some(weight), Some(input), None) = (treatment.weight, treatment.input_format(rows), treatment.sparsity) else {
        return None;
    };
    let kind = treatment.dtype;
    let has = |(codes, shared)| {
        let (of_weight, of_input) = kernel_formats(codes, shared, kind);
        (weight == of_weight && input == of_input).then_some((codes, shared))
    };
    let known = [
        (DynamicFormat::Int8, ScaleGranularity::Row),
        (DynamicFormat::E4m3, ScaleGranularity::Row),
        (DynamicFormat::E4m3, ScaleGranularity::Tensor),
        (DynamicFormat::Int4, ScaleGranularity::Row),
        (DynamicFormat::Int4Grouped, ScaleGranularity::Row),
    ];
    let (codes, shared) = known.into_iter().find_map(has)?;
    let sums = match treatment.precision_hint {
        Some(PrecisionHint::FastAccumulation) => Float8Accumulation::Fast,
        _ => Float8Accumulation::Promoted,
    };
    Some(DynamicLinearSpec {
        kind,
        format: codes,
        granularity: shared,
        accumulation: sums,
        prologue: Prologue::None,
        activation: None,
        has_addend: false,
    })
}

/// Returns the formats of weight and input that the kernels implement.
fn kernel_formats(codes: DynamicFormat, shared: ScaleGranularity, kind: Dtype) -> (Format, Format) {
    let grouping = match shared {
        ScaleGranularity::Row => Grouping::Row,
        ScaleGranularity::Tensor => Grouping::Tensor,
    };
    let bytes = |scale| {
        let method = QuantMethod::Symmetric { min: -127, max: 127, epsilon: 1e-5 };
        Format::symmetric(8, grouping, kind, scale).with_method(method)
    };
    match codes {
        DynamicFormat::Int8 => {
            // For f16 the kernels hold scales, and products with inverse scales, in f32.
            let scale = if kind == Dtype::F16 { Dtype::F32 } else { kind };
            (Format::symmetric(8, grouping, kind, kind), bytes(scale))
        }
        DynamicFormat::Int4 => {
            let symmetric = |bits| Format::symmetric(bits, grouping, kind, Dtype::F32);
            (symmetric(4), symmetric(8))
        }
        DynamicFormat::Int4Grouped => {
            (Format::qqq(Grouping::Block(DynamicFormat::GROUP_SIZE as u32), kind), bytes(Dtype::F32))
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
    fn dynamic_recipes_have_a_kernel_form() {
        let treatment =
            |name: &str, kind, sparsity| name.parse::<Recipe>().unwrap().quant_config(kind, sparsity).unwrap();
        for kind in Dtype::ALL {
            let form = |name: &str, rows| {
                dynamic_form(&treatment(name, kind, None), rows).map(|form| (form.kind, form.format, form.granularity))
            };
            let int8 = Some((kind, DynamicFormat::Int8, ScaleGranularity::Row));
            assert_eq!([form("int8dq", 1), form("int8dq", 8), form("int8dq_prefill_wo_decode", 2)], [int8; 3]);
            assert_eq!(form("int8dq_prefill_wo_decode", 1), None, "weight-only");
            assert_eq!(form("float8dq-row", 1), Some((kind, DynamicFormat::E4m3, ScaleGranularity::Row)));
            assert_eq!(form("float8dq-tensor", 8), Some((kind, DynamicFormat::E4m3, ScaleGranularity::Tensor)));
            let halves = [("int8adq-int4w-symm", DynamicFormat::Int4), ("marlin-qqq", DynamicFormat::Int4Grouped)];
            for (name, codes) in halves {
                assert_eq!(form(name, 8), Some((kind, codes, ScaleGranularity::Row)), "{name}");
            }
            for (name, sums) in
                [("float8dq-row", Float8Accumulation::Promoted), ("float8dq-row-fast", Float8Accumulation::Fast)]
            {
                assert_eq!(dynamic_form(&treatment(name, kind, None), 8).map(|form| form.accumulation), Some(sums));
            }
            for other in ["baseline", "int8wo", "float8wo", "mxfp8", "nvfp4"] {
                assert_eq!(dynamic_form(&treatment(other, kind, None), 8), None, "{other}");
            }
            let semi = Some(Sparsity::SemiStructured);
            assert_eq!(dynamic_form(&treatment("int8dq", kind, semi), 8), None);
        }
    }
}
