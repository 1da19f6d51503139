//! Formats of the operands of the three GEMMs of a linear layer in training.

use crate::format::{Format, Grouping, MxScaling, QuantMethod};
use crate::{Dtype, Element};

/// Formats of the two operands of a GEMM, which reduces along the rows of both. An operand without a format stays in
/// the dtype of the model and is multiplied with the dequantized values of the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OperandFormats {
    /// Left operand: rows of the result.
    pub left: Option<Format>,
    /// Right operand: columns of the result.
    pub right: Option<Format>,
}

impl OperandFormats {
    /// Both operands quantized.
    fn quantized(left: Format, right: Format) -> Option<Self> {
        Some(Self { left: Some(left), right: Some(right) })
    }

    /// True if scales vary along the reduction dimension, so that they cannot be applied to the result.
    pub(super) fn has_blocks(self) -> bool {
        [self.left, self.right].iter().flatten().any(|format| matches!(format.grouping, Grouping::Block(_)))
    }

    /// Leaves one operand, or both, unquantized; `None` if neither is quantized.
    fn unquantized(self, left: bool, right: bool) -> Option<Self> {
        let Self { left: of_left, right: of_right } = self;
        let operands = Self { left: of_left.filter(|_| !left), right: of_right.filter(|_| !right) };
        (operands.left.is_some() || operands.right.is_some()).then_some(operands)
    }
}

/// Operand of the GEMMs of a linear layer in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrainingOperand {
    /// Input of the layer.
    Input,
    /// Weight of the layer.
    Weight,
    /// Gradient of the output.
    GradOutput,
}

impl TrainingOperand {
    /// All operands.
    pub const ALL: [Self; 3] = [Self::Input, Self::Weight, Self::GradOutput];

    /// Name in torchao's configuration files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Weight => "weight",
            Self::GradOutput => "grad_output",
        }
    }
}

/// Kernels that cast operands to float8; the results are identical.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum CastStrategy {
    /// Operands are quantized to packed words and read back; scales are applied to the result one after the other.
    #[default]
    Packed,
    /// A single kernel reads an operand, rounds it and writes its float8 values in f32; two kernels for tensor scales.
    /// Another kernel applies the scales of both operands. Falls back to [`Self::Packed`] for backends and formats
    /// without such kernels.
    Fused,
}

/// Formats of the three GEMMs of a linear layer; a GEMM without formats runs in the dtype of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Float8Training {
    /// Input times weight.
    pub output: Option<OperandFormats>,
    /// Gradient of the output times weight.
    pub grad_input: Option<OperandFormats>,
    /// Gradient of the output times input.
    pub grad_weight: Option<OperandFormats>,
    /// Kernels that cast the operands.
    pub cast_strategy: CastStrategy,
}

/// Lower bound of amax, so that a tensor of zeros has a nonzero scale.
const EPSILON: f32 = 1e-12;

impl Float8Training {
    /// All GEMMs in the dtype of the model.
    pub fn unquantized() -> Self {
        Self { output: None, grad_input: None, grad_weight: None, cast_strategy: CastStrategy::Packed }
    }

    /// Selects the kernels that cast operands.
    pub fn with_cast_strategy(self, casting: CastStrategy) -> Self {
        Self { cast_strategy: casting, ..self }
    }

    /// A single scale per operand; gradients use the wider range of e5m2.
    pub fn tensorwise() -> Self {
        let format = |element| {
            Format::float8(element, Grouping::Tensor, Dtype::F32).with_method(QuantMethod::Floats { epsilon: EPSILON })
        };
        let (forward, back) = (format(Element::E4m3), format(Element::E5m2));
        let backward = OperandFormats::quantized(back, forward);
        Self {
            output: OperandFormats::quantized(forward, forward),
            grad_input: backward,
            grad_weight: backward,
            ..Self::unquantized()
        }
    }

    /// e4m3 with a power-of-two scale for each row of each operand.
    pub fn rowwise() -> Self {
        Self::uniform(power_of_two_scaled(Grouping::Row))
    }

    /// Like [`Self::rowwise`], but the weight gradient is computed in the dtype of the model, and the weight has a
    /// single scale in the GEMM of the input gradient.
    pub fn rowwise_with_gw_hp() -> Self {
        let grad_input =
            OperandFormats::quantized(power_of_two_scaled(Grouping::Row), power_of_two_scaled(Grouping::Tensor));
        Self { grad_input, grad_weight: None, ..Self::rowwise() }
    }

    /// OCP microscaling: a power-of-two scale for each block of 32.
    pub fn mxfp8() -> Self {
        Self::uniform(Format::mx(Element::E4m3, MxScaling::Ceil))
    }

    fn uniform(format: Format) -> Self {
        let operands = OperandFormats::quantized(format, format);
        Self { output: operands, grad_input: operands, grad_weight: operands, ..Self::unquantized() }
    }

    /// Leaves an operand in the dtype of the model in both of its GEMMs; the other operands stay in float8. Equivalent
    /// to `disabled` in torchao's configurations.
    pub fn with_unquantized(self, operand: TrainingOperand) -> Self {
        let is = |other| operand == other;
        let kept = |operands: Option<OperandFormats>, left, right| operands?.unquantized(is(left), is(right));
        Self {
            output: kept(self.output, TrainingOperand::Input, TrainingOperand::Weight),
            grad_input: kept(self.grad_input, TrainingOperand::GradOutput, TrainingOperand::Weight),
            grad_weight: kept(self.grad_weight, TrainingOperand::GradOutput, TrainingOperand::Input),
            cast_strategy: self.cast_strategy,
        }
    }
}

/// e4m3 with power-of-two scales, rounded up so that no value saturates.
fn power_of_two_scaled(grouping: Grouping) -> Format {
    Format { grouping, ..Format::mx(Element::E4m3, MxScaling::Ceil) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_excluded_independently() {
        let in_float8 = |training: Float8Training| {
            [training.output, training.grad_input, training.grad_weight]
                .map(|operands| operands.map(|OperandFormats { left, right }| (left.is_some(), right.is_some())))
        };
        let (both, left, right) = (Some((true, true)), Some((true, false)), Some((false, true)));
        let all = Float8Training::rowwise();
        assert_eq!(in_float8(all), [both, both, both]);
        assert_eq!(in_float8(all.with_unquantized(TrainingOperand::Input)), [right, both, left]);
        assert_eq!(in_float8(all.with_unquantized(TrainingOperand::Weight)), [left, left, both]);
        assert_eq!(in_float8(all.with_unquantized(TrainingOperand::GradOutput)), [both, right, right]);
        assert_eq!(
            in_float8(all.with_unquantized(TrainingOperand::Input).with_unquantized(TrainingOperand::Weight)),
            [None, left, left]
        );
        assert_eq!(in_float8(Float8Training::rowwise_with_gw_hp()), [both, both, None]);
        let none = TrainingOperand::ALL.into_iter().fold(all, Float8Training::with_unquantized);
        assert_eq!(none, Float8Training::unquantized());
    }
}
