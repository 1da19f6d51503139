//! Matrix products A B of operands that are multiplied as they are given; A is (m, k), B is (k, n), both row-major.
//!
//! All of them write bf16, but `gemm_accum` f32, and `gemm_simple_with_dtype` what [`Spec::output`] says, bf16 if nothing.

mod burn;
#[cfg(feature = "cuda")]
mod native;
mod reference;

use crate::operators::number_types::{BF16, F16, F32, allow};
use crate::operators::product::{AXES, in_sixteens, moves, size};
use crate::registry::table::Zoo;
use crate::{Along, Cost, Fill, Implementation, Moves, Operand, Operation, Signature, Slot, Spec, Suite, ZooError};
use calorimeter_recipes::{Dtype, Element};

/// A product by what is given and what is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Gemm {
    /// `gemm_multiple_run`: of any type.
    MultipleRun,
    /// `gemm_simple`: of e4m3 or bf16.
    Simple,
    /// `gemm_simple_with_dtype`: of any type to any type.
    SimpleWithDtype,
    /// `gemm_throttling`: of any type, to be run for long.
    Throttling,
    /// `gemm`: of e4m3, each row of A and column of B with a scale.
    Scaled,
    /// `gemm_accum`: the same added to C.
    Accumulated,
}

impl Gemm {
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::MultipleRun, Self::Simple, Self::SimpleWithDtype, Self::Throttling, Self::Scaled, Self::Accumulated];

    /// What cuBLASLt multiplies.
    fn natively(&self, spec: &Spec) -> Result<(), String> {
        match (spec.element, self.output(spec)) {
            (Element::E4m3, Element::Float(_)) => in_sixteens(spec),
            (Element::Float(_), Element::Float(_)) => Ok(()),
            (from, to) => {
                Err(format!("`native` multiplies floats and e4m3 to floats in this version, not {from} to {to}"))
            }
        }
    }

    fn output(self, spec: &Spec) -> Element {
        match self {
            Self::Accumulated => F32,
            _ => spec.output.unwrap_or(BF16),
        }
    }

    fn scaled(self) -> bool {
        matches!(self, Self::Scaled | Self::Accumulated)
    }

    /// The type that burn multiplies in. It rounds the product to it, so that is no coarser than the output, and f32 where
    /// scales follow.
    fn multiplied(self, spec: &Spec) -> Dtype {
        match (spec.element, self.output(spec)) {
            _ if self.scaled() => Dtype::F32,
            // Every e4m3 number is one of f16 and of bf16 too.
            (Element::E4m3, Element::Float(output)) => output,
            (Element::Float(input), Element::Float(output)) if input.unit_roundoff() <= output.unit_roundoff() => input,
            _ => Dtype::F32,
        }
    }
}

/// Registers them with the ways to run them.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators(Gemm::ALL).burn().native_where(Gemm::natively);
}

impl Signature for Gemm {
    fn name(&self) -> &'static str {
        match self {
            Self::MultipleRun => "gemm_multiple_run",
            Self::Simple => "gemm_simple",
            Self::SimpleWithDtype => "gemm_simple_with_dtype",
            Self::Throttling => "gemm_throttling",
            Self::Scaled => "gemm",
            Self::Accumulated => "gemm_accum",
        }
    }

    fn about(&self) -> &'static str {
        "product of two matrices in a type of one's choice"
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        let (inputs, outputs): (&[Element], &[Element]) = match self {
            Self::MultipleRun | Self::Throttling => (&[F32, F16, BF16, Element::E4m3, Element::E2m1], &[BF16]),
            Self::Simple => (&[Element::E4m3, BF16], &[BF16]),
            Self::SimpleWithDtype => (&[F32, F16, BF16, Element::E4m3], &[F32, F16, BF16, Element::E4m3]),
            Self::Scaled => (&[Element::E4m3], &[BF16]),
            Self::Accumulated => (&[Element::E4m3], &[F32]),
        };
        allow(self.name(), spec, inputs, outputs)
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, k, n) = size(spec);
        let mut inputs = vec![Operand::normal(m, k, spec.element), Operand::normal(k, n, spec.element)];
        if self.scaled() {
            // Scales of one size: the errors of a row are compared with the whole output's numbers.
            let scales = Fill::Uniform(0.5, 1.5);
            inputs.push(Operand::normal(m, 1, F32).filled(scales));
            inputs.push(Operand::normal(1, n, F32).filled(scales));
        }
        if *self == Self::Accumulated {
            inputs.push(Operand::normal(m, n, F32));
        }
        inputs
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (m, _, n) = size(spec);
        vec![Slot::new(m, n, self.output(spec))]
    }
}

impl Cost for Gemm {
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        let after = match self {
            // The product of both scales, and with it.
            Self::Scaled => 2,
            Self::Accumulated => 3,
            _ => 0,
        };
        2 * m * k * n + after * m * n
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        let (multiplied, output) = (self.multiplied(spec), self.output(spec));
        let operands =
            if spec.element == Element::Float(multiplied) { 0 } else { (m * k + k * n) * multiplied.bytes() };
        let product = if output == Element::Float(multiplied) { 0 } else { m * n * multiplied.bytes() };
        let scaling = if self.scaled() { 2 * m * n * 4 } else { 0 };
        operands + product + scaling
    }

    fn factors(&self, spec: &Spec, implementation: Implementation) -> Element {
        match implementation {
            Implementation::Native => spec.element,
            _ => Element::Float(self.multiplied(spec)),
        }
    }

    fn products(&self) -> u32 {
        1
    }
}

impl Operation for Gemm {
    fn suite(&self) -> Suite {
        Suite::Gemm
    }

    // A, B, the scales of both, and what is added.
    fn moves(&self, spec: &Spec) -> Moves {
        let by_rows = [Along::Rows, Along::Nothing, Along::Rows, Along::Nothing, Along::Rows];
        let by_columns = [Along::Nothing, Along::Columns, Along::Nothing, Along::Columns, Along::Columns];
        moves(spec, &by_rows, &by_columns)
    }
}
