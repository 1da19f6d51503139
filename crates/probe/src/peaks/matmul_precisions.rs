//! Precisions of the matmuls of a case; each has its own peak.

use super::limit::MatmulPrecision;
use super::matmul_shapes;
use calorimeter_case::{Case, Implementation};
use calorimeter_recipes::{Dtype, Element, QuantConfig};

/// Returns the precisions that the matmuls of a case may use; empty if one of them has no probe. `factors` is the
/// element type of unquantized matmuls.
pub fn matmul_precisions(
    case: &Case,
    factors: Element,
    treatment: &QuantConfig,
    may_use_tf32: bool,
) -> Vec<MatmulPrecision> {
    let mut multiplied = vec![linear_operand_element(case, factors, treatment)];
    if matmul_shapes::case_shape(case).is_none() {
        // Matmuls outside the linear layers are not quantized.
        multiplied.push(factors);
    }
    let mut kinds: Vec<MatmulPrecision> =
        multiplied.into_iter().map(probe_precision).collect::<Option<_>>().unwrap_or_default();
    kinds.dedup();
    if may_use_tf32 && kinds.contains(&MatmulPrecision::F32) {
        kinds.push(MatmulPrecision::Tf32);
    }
    kinds
}

/// Element type that the linear layers multiply.
fn linear_operand_element(case: &Case, factors: Element, treatment: &QuantConfig) -> Element {
    // Layers of a larger model have more rows than its m.
    let rows = matmul_shapes::case_shape(case).map_or(usize::MAX, |form| form.m() as usize);
    match (treatment.input_format(rows), case.implementation) {
        // Weight-only: weights are dequantized to the dtype of the model.
        (None, _) => factors,
        // burn multiplies floats only, and f32 represents the quantized values exactly.
        (Some(_), Implementation::Eager | Implementation::Fused) => Element::Float(Dtype::F32),
        (Some(codes), _) => codes.element,
    }
}

/// Precision of the probe for an element type, if there is a probe.
fn probe_precision(element: Element) -> Option<MatmulPrecision> {
    match element {
        Element::Float(Dtype::F32) => Some(MatmulPrecision::F32),
        Element::Float(Dtype::F16) => Some(MatmulPrecision::F16),
        Element::Float(Dtype::Bf16) => Some(MatmulPrecision::Bf16),
        Element::E4m3 => Some(MatmulPrecision::E4m3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::MatmulPrecision::{Bf16, E4m3, F32, Tf32};
    use super::*;
    use calorimeter_case::Axes;
    use calorimeter_recipes::MatmulMode;
    use calorimeter_recipes::format::{Format, Grouping};

    const BF16: Element = Element::Float(Dtype::Bf16);

    fn case(implementation: Implementation, m: u64, flops: u64) -> Case {
        let shape = Axes::from([("m", m), ("k", 64), ("n", 32)]);
        Case { implementation, shape, flops: Some(flops), ..Case::default() }
    }

    fn linear(implementation: Implementation, m: u64) -> Case {
        case(implementation, m, 2 * m * 64 * 32)
    }

    fn int8() -> Format {
        Format::symmetric(8, Grouping::Row, Dtype::Bf16, Dtype::Bf16)
    }

    #[test]
    fn matmul_precision_follows_the_operands() {
        use Implementation::{Eager, Native};
        let (none, weight_only) =
            (QuantConfig::unquantized(Dtype::Bf16), QuantConfig::weight_only(Dtype::Bf16, int8()));
        let dynamic = QuantConfig::dynamic(Dtype::Bf16, int8(), int8(), MatmulMode::QuantizedValues(Dtype::Bf16));
        let spared = QuantConfig { skip_input_for_single_row: true, ..dynamic };
        let block = case(Eager, 8, 100 * 2 * 8 * 64 * 32);
        for (case, factors, treatment, tf32, expected) in [
            (linear(Eager, 8), BF16, &none, true, &[Bf16][..]),
            (linear(Eager, 8), Element::Float(Dtype::F32), &none, true, &[F32, Tf32]),
            (linear(Native, 8), Element::E4m3, &none, false, &[E4m3]),
            // There is no int8 x int8 probe.
            (linear(Native, 8), Element::Signed(8), &none, false, &[]),
            (linear(Eager, 8), BF16, &weight_only, true, &[Bf16]),
            (linear(Eager, 8), BF16, &dynamic, true, &[F32, Tf32]),
            (linear(Eager, 8), BF16, &spared, true, &[F32, Tf32]),
            (linear(Eager, 1), BF16, &spared, true, &[Bf16]),
            // Other implementations may multiply the quantized values themselves.
            (linear(Native, 8), BF16, &dynamic, false, &[]),
            (linear(Native, 8), BF16, &weight_only, false, &[Bf16]),
            // The matmuls of attention use the dtype of the model.
            (block, BF16, &spared, false, &[F32, Bf16]),
        ] {
            assert_eq!(
                matmul_precisions(&case, factors, treatment, tf32),
                expected,
                "{} {factors}",
                case.implementation
            );
        }
    }
}
