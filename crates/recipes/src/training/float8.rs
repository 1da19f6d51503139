//! How the operands of a layer's three products are stored.

use crate::format::{Format, Grouping, Method, MxScaling};
use crate::{Dtype, Element};

/// How the two operands of a product are stored; rows of either are summed up. One without a format stays in the model's own
/// type, and is multiplied with the numbers that the other's codes stand for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operands {
    /// The rows of the product.
    pub left: Option<Format>,
    /// Its columns.
    pub right: Option<Format>,
}

impl Operands {
    /// Both in codes.
    fn both(left: Format, right: Format) -> Option<Self> {
        Some(Self { left: Some(left), right: Some(right) })
    }

    /// Whether scales change along what is summed up, so that they cannot be laid over the product.
    pub(super) fn has_blocks(self) -> bool {
        [self.left, self.right].iter().flatten().any(|format| matches!(format.grouping, Grouping::Block(_)))
    }

    /// The same with one side, or both, in the model's own type; nothing is left of two of these.
    fn without(self, left: bool, right: bool) -> Option<Self> {
        let Self { left: of_left, right: of_right } = self;
        let operands = Self { left: of_left.filter(|_| !left), right: of_right.filter(|_| !right) };
        (operands.left.is_some() || operands.right.is_some()).then_some(operands)
    }
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

impl Operand {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Input, Self::Weight, Self::GradOutput];

    /// Its name, as torchao's files have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Weight => "weight",
            Self::GradOutput => "grad_output",
        }
    }
}

/// Whose kernels make an operand's numbers; the numbers are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Casting {
    /// Those of quantization: codes are packed and read back, and scales laid over the product one after the other.
    #[default]
    Stored,
    /// One that reads an operand, rounds it and writes what its codes stand for, two where the whole tensor shares a scale,
    /// and one for the scales of both operands. Where a backend or a format has none, it is as [`Self::Stored`].
    AtOnce,
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
    /// How operands are cast.
    pub casting: Casting,
}

/// The smallest of the largest magnitudes: a tensor of zeros has a scale.
const EPSILON: f32 = 1e-12;

impl Float8Training {
    /// Nothing in float8.
    pub fn none() -> Self {
        Self { output: None, grad_input: None, grad_weight: None, casting: Casting::Stored }
    }

    /// The same by other kernels.
    pub fn with_casting(self, casting: Casting) -> Self {
        Self { casting, ..self }
    }

    /// One scale for each operand; gradients have the wider range of e5m2.
    pub fn tensorwise() -> Self {
        let format = |element| {
            Format::float8(element, Grouping::Tensor, Dtype::F32).with_method(Method::Floats { epsilon: EPSILON })
        };
        let (forward, back) = (format(Element::E4m3), format(Element::E5m2));
        let backward = Operands::both(back, forward);
        Self { output: Operands::both(forward, forward), grad_input: backward, grad_weight: backward, ..Self::none() }
    }

    /// A scale for each row of each operand, a power of two; everything is e4m3.
    pub fn rowwise() -> Self {
        Self::alike(power(Grouping::Row))
    }

    /// The same, but for the gradient of the weight, which is multiplied in the model's own type; the weight has one scale
    /// where it is multiplied with gradients.
    pub fn rowwise_with_gw_hp() -> Self {
        let grad_input = Operands::both(power(Grouping::Row), power(Grouping::Tensor));
        Self { grad_input, grad_weight: None, ..Self::rowwise() }
    }

    /// OCP microscaling: a power of two for each block of 32.
    pub fn mxfp8() -> Self {
        Self::alike(Format::mx(Element::E4m3, MxScaling::Ceil))
    }

    fn alike(format: Format) -> Self {
        let operands = Operands::both(format, format);
        Self { output: operands, grad_input: operands, grad_weight: operands, ..Self::none() }
    }

    /// With an operand that stays in the model's own type in both products that it is part of; the other operand of each is in
    /// float8 as before. This is what `disabled` means in torchao's configurations.
    pub fn without(self, operand: Operand) -> Self {
        let is = |other| operand == other;
        let kept = |operands: Option<Operands>, left, right| operands?.without(is(left), is(right));
        Self {
            output: kept(self.output, Operand::Input, Operand::Weight),
            grad_input: kept(self.grad_input, Operand::GradOutput, Operand::Weight),
            grad_weight: kept(self.grad_weight, Operand::GradOutput, Operand::Input),
            casting: self.casting,
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
    fn each_operand_stays_as_it_is_by_itself() {
        let in_float8 = |training: Float8Training| {
            [training.output, training.grad_input, training.grad_weight]
                .map(|operands| operands.map(|Operands { left, right }| (left.is_some(), right.is_some())))
        };
        let (both, left, right) = (Some((true, true)), Some((true, false)), Some((false, true)));
        let all = Float8Training::rowwise();
        assert_eq!(in_float8(all), [both, both, both]);
        assert_eq!(in_float8(all.without(Operand::Input)), [right, both, left]);
        assert_eq!(in_float8(all.without(Operand::Weight)), [left, left, both]);
        assert_eq!(in_float8(all.without(Operand::GradOutput)), [both, right, right]);
        assert_eq!(in_float8(all.without(Operand::Input).without(Operand::Weight)), [None, left, left]);
        assert_eq!(in_float8(Float8Training::rowwise_with_gw_hp()), [both, both, None]);
        let none = Operand::ALL.into_iter().fold(all, Float8Training::without);
        assert_eq!(none, Float8Training::none());
    }
}
