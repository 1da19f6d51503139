//! GEMM operators Y = A B without quantization: A is `[m, k]`, B is `[k, n]`, both row-major.
//!
//! Outputs are bf16, except for `gemm_accum` (f32) and `gemm_simple_with_dtype` ([`Spec::output`], by default bf16).

mod burn;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::operators::dtypes::{BF16, F16, F32, check_dtypes};
use crate::operators::matmul::{AXES, check_float8_alignment, set_rotation, size};
use crate::registry::table::Zoo;
use crate::{
    Cost, Fill, Implementation, Operand, Operation, OutputSlot, RotationAxis, SetRotation, Signature, Spec, Suite,
    ZooError,
};
use calorimeter_recipes::{Dtype, Element};

/// GEMM operator: dtypes and epilogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Gemm {
    /// `gemm_multiple_run`: any input dtype.
    MultipleRun,
    /// `gemm_simple`: e4m3 or bf16 inputs.
    Simple,
    /// `gemm_simple_with_dtype`: any input and output dtype, except e2m1.
    SimpleWithDtype,
    /// `gemm_throttling`: any input dtype; meant for long runs under load.
    Throttling,
    /// `gemm`: e4m3 inputs with a scale per row of A and per column of B.
    Scaled,
    /// `gemm_accum`: `gemm` plus an f32 matrix C.
    Accumulated,
}

impl Gemm {
    /// All GEMM operators.
    pub const ALL: [Self; 6] =
        [Self::MultipleRun, Self::Simple, Self::SimpleWithDtype, Self::Throttling, Self::Scaled, Self::Accumulated];

    /// Checks that cuBLASLt supports the dtypes and sizes.
    fn check_native(&self, spec: &Spec) -> Result<(), String> {
        match (spec.element, self.output_element(spec)) {
            (Element::E4m3, Element::Float(_)) => check_float8_alignment(spec),
            (Element::Float(_), Element::Float(_)) => Ok(()),
            (from, to) => Err(format!(
                "`native` multiplies float and e4m3 inputs to float outputs in this version, not {from} to {to}"
            )),
        }
    }

    fn output_element(self, spec: &Spec) -> Element {
        match self {
            Self::Accumulated => F32,
            _ => spec.output.unwrap_or(BF16),
        }
    }

    fn has_scales(self) -> bool {
        matches!(self, Self::Scaled | Self::Accumulated)
    }

    /// Dtype that burn multiplies in. burn rounds the product to it, so it is at least as precise as the output, and
    /// f32 if scales follow.
    fn burn_dtype(self, spec: &Spec) -> Dtype {
        match (spec.element, self.output_element(spec)) {
            _ if self.has_scales() => Dtype::F32,
            // Every e4m3 value is exact in f16 and in bf16.
            (Element::E4m3, Element::Float(output)) => output,
            (Element::Float(input), Element::Float(output)) if input.unit_roundoff() <= output.unit_roundoff() => input,
            _ => Dtype::F32,
        }
    }
}

/// Registers the GEMM operators with their implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators(Gemm::ALL).burn().native_where(Gemm::check_native);
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

    fn description(&self) -> &'static str {
        "GEMM with selectable input and output dtypes"
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
        check_dtypes(self.name(), spec, inputs, outputs)
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, k, n) = size(spec);
        let mut inputs = vec![Operand::normal(m, k, spec.element), Operand::normal(k, n, spec.element)];
        if self.has_scales() {
            // Scales of similar size, because errors are compared with the RMS of the whole output.
            let scales = Fill::Uniform(0.5, 1.5);
            inputs.push(Operand::normal(m, 1, F32).with_fill(scales));
            inputs.push(Operand::normal(1, n, F32).with_fill(scales));
        }
        if *self == Self::Accumulated {
            inputs.push(Operand::normal(m, n, F32));
        }
        inputs
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        let (m, _, n) = size(spec);
        vec![OutputSlot::new(m, n, self.output_element(spec))]
    }
}

impl Cost for Gemm {
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        let after = match self {
            // Product of both scales, and its product with the accumulator.
            Self::Scaled => 2,
            Self::Accumulated => 3,
            _ => 0,
        };
        2 * m * k * n + after * m * n
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        let (multiplied, output) = (self.burn_dtype(spec), self.output_element(spec));
        let operands =
            if spec.element == Element::Float(multiplied) { 0 } else { (m * k + k * n) * multiplied.bytes() };
        let product = if output == Element::Float(multiplied) { 0 } else { m * n * multiplied.bytes() };
        let scaling = if self.has_scales() { 2 * m * n * 4 } else { 0 };
        operands + product + scaling
    }

    fn matmul_element(&self, spec: &Spec, implementation: Implementation) -> Element {
        if implementation.uses_burn() { Element::Float(self.burn_dtype(spec)) } else { spec.element }
    }

    fn matmuls(&self) -> u32 {
        1
    }
}

impl Operation for Gemm {
    fn suite(&self) -> Suite {
        Suite::Gemm
    }

    // A, B, the scales of both, and C.
    fn set_rotation(&self, spec: &Spec) -> SetRotation {
        let by_rows =
            [RotationAxis::Rows, RotationAxis::Fixed, RotationAxis::Rows, RotationAxis::Fixed, RotationAxis::Rows];
        let by_columns = [
            RotationAxis::Fixed,
            RotationAxis::Columns,
            RotationAxis::Fixed,
            RotationAxis::Columns,
            RotationAxis::Columns,
        ];
        set_rotation(spec, &by_rows, &by_columns)
    }
}
