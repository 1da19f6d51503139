//! How the operands of a layer's three products are stored.

use crate::format::{Format, Grouping, Method, MxScaling};
use crate::{Dtype, Element};

/// How the two operands of a product are stored; rows of either are summed up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operands {
    /// The rows of the product.
    pub left: Format,
    /// Its columns.
    pub right: Format,
}

/// What is multiplied while a linear layer is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// What the layer is given.
    Input,
    /// Its parameter.
    Weight,
    /// What comes back from the layers behind it.
    GradOutput,
}

/// The three products of a linear layer; one without formats is multiplied in the model's own type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Float8Training {
    /// Input times weight.
    pub output: Option<Operands>,
    /// Gradient of the output times weight: what goes back to the layers before it.
    pub grad_input: Option<Operands>,
    /// Gradient of the output times input: what the weight is changed by.
    pub grad_weight: Option<Operands>,
}

/// The smallest of the largest magnitudes: a tensor of zeros has a scale.
const EPSILON: f32 = 1e-12;

impl Float8Training {
    /// Nothing in float8.
    pub fn none() -> Self {
        Self { output: None, grad_input: None, grad_weight: None }
    }

    /// One scale for each operand; gradients have the wider range of e5m2.
    pub fn tensorwise() -> Self {
        let format = |element| {
            Format::float8(element, Grouping::Tensor, Dtype::F32).with_method(Method::Floats { epsilon: EPSILON })
        };
        let (forward, back) = (format(Element::E4m3), format(Element::E5m2));
        let backward = Operands { left: back, right: forward };
        Self {
            output: Some(Operands { left: forward, right: forward }),
            grad_input: Some(backward),
            grad_weight: Some(backward),
        }
    }

    /// A scale for each row of each operand, a power of two; everything is e4m3.
    pub fn rowwise() -> Self {
        Self::alike(Operands { left: power(Grouping::Row), right: power(Grouping::Row) })
    }

    /// The same, but for the gradient of the weight, which is multiplied in the model's own type; the weight has one scale
    /// where it is multiplied with gradients.
    pub fn rowwise_with_gw_hp() -> Self {
        let grad_input = Operands { left: power(Grouping::Row), right: power(Grouping::Tensor) };
        Self { grad_input: Some(grad_input), grad_weight: None, ..Self::rowwise() }
    }

    /// OCP microscaling: a power of two for each block of 32.
    pub fn mxfp8() -> Self {
        let format = Format::mx(Element::E4m3, MxScaling::Ceil);
        Self::alike(Operands { left: format, right: format })
    }

    fn alike(operands: Operands) -> Self {
        Self { output: Some(operands), grad_input: Some(operands), grad_weight: Some(operands) }
    }

    /// With an operand that stays in the model's own type, and so does every product that it is part of.
    pub fn without(self, operand: Operand) -> Self {
        let Self { output, grad_input, grad_weight } = self;
        Self {
            output: output.filter(|_| operand == Operand::GradOutput),
            grad_input: grad_input.filter(|_| operand == Operand::Input),
            grad_weight: grad_weight.filter(|_| operand == Operand::Weight),
        }
    }
}

/// e4m3 under powers of two, rounded so that nothing saturates.
fn power(grouping: Grouping) -> Format {
    Format { grouping, ..Format::mx(Element::E4m3, MxScaling::Ceil) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_in_float8_only_with_both_of_its_operands() {
        let in_float8 = |training: Float8Training| {
            [training.output, training.grad_input, training.grad_weight].map(|operands| operands.is_some())
        };
        let all = Float8Training::rowwise();
        assert_eq!(in_float8(all), [true, true, true]);
        assert_eq!(in_float8(all.without(Operand::Input)), [false, true, false]);
        assert_eq!(in_float8(all.without(Operand::Weight)), [false, false, true]);
        assert_eq!(in_float8(all.without(Operand::GradOutput)), [true, false, false]);
        assert_eq!(in_float8(Float8Training::rowwise_with_gw_hp()), [true, true, false]);
    }
}
