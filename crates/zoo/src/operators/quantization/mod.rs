//! Quantization of bf16 matrices to e4m3 (or e2m1 if [`Spec::output`] says so), with f32 scales.
//!
//! x is `[m, n]`; quantized values q are `[m, n]`, or `[n, m]` for the transposing operators; scales s are one per row
//! of q, or a single one. x ≈ q * s. Scales and quotients are rounded to bf16. burn has no e2m1 tensors.

mod burn;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::operators::dtypes::{BF16, F32, check_dtypes};
use crate::operators::matmul::column;
use crate::registry::table::Zoo;
use crate::{
    Cost, Fill, Matrix, Operand, Operation, OutputSlot, RotationAxis, SetRotation, Signature, Spec, Suite, ZooError,
};
use calorimeter_recipes::Element;

/// Quantization operator: origin of the scales, with or without a transpose first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Quantization {
    /// `quantization`: one scale per row, from its amax.
    Rows,
    /// `quantization_static_scaling`: one scale, which maps 224 to the largest value of the format.
    Static,
    /// `transpose_quantization`: transposes x; one scale per row of the result.
    Transposed,
    /// `transpose_quantization_static_scaling`: transposes x; one static scale.
    TransposedStatic,
}

/// Largest share of quantized values that may be one step off in a correct kernel. A kernel that does not round the
/// quotient to bf16 has 3 %.
const MAX_CROSSED_SHARE: f64 = 1.0 / 32.0;

impl Quantization {
    /// All quantization operators.
    pub const ALL: [Self; 4] = [Self::Rows, Self::Static, Self::Transposed, Self::TransposedStatic];

    /// Checks that the CUDA kernels write the output dtype.
    fn check_native(&self, spec: &Spec) -> Result<(), String> {
        match self.output_element(spec) {
            Element::E4m3 => Ok(()),
            other => Err(format!("`native` writes e4m3 in this version, not {other}")),
        }
    }

    fn is_transposed(self) -> bool {
        matches!(self, Self::Transposed | Self::TransposedStatic)
    }

    fn is_static(self) -> bool {
        matches!(self, Self::Static | Self::TransposedStatic)
    }

    fn output_element(self, spec: &Spec) -> Element {
        spec.output.unwrap_or(Element::E4m3)
    }

    /// Rows and columns of the quantized matrix.
    fn output_shape(self, spec: &Spec) -> (u64, u64) {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        if self.is_transposed() { (n, m) } else { (m, n) }
    }

    /// Elements of x that one row of the quantized matrix is computed from.
    fn source_row(self, matrix: &Matrix, row: usize) -> Vec<f32> {
        if self.is_transposed() { column(matrix, row) } else { matrix.row(row).to_vec() }
    }
}

/// Registers the quantization operators with their implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators(Quantization::ALL).burn().native_where(Quantization::check_native);
}

impl Signature for Quantization {
    fn name(&self) -> &'static str {
        match self {
            Self::Rows => "quantization",
            Self::Static => "quantization_static_scaling",
            Self::Transposed => "transpose_quantization",
            Self::TransposedStatic => "transpose_quantization_static_scaling",
        }
    }

    fn description(&self) -> &'static str {
        "quantized values and scales of a bf16 matrix"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "n"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        check_dtypes(self.name(), spec, &[BF16], &[Element::E4m3, Element::E2m1])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let input = Operand::normal(spec.axis("m"), spec.axis("n"), BF16);
        // With a static scale some elements exceed its range, to test saturation.
        vec![if self.is_static() { input.with_fill(Fill::Uniform(-256.0, 256.0)) } else { input }]
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        let (rows, cols) = self.output_shape(spec);
        let scales = if self.is_static() { 1 } else { rows };
        vec![OutputSlot::new(rows, cols, self.output_element(spec)), OutputSlot::new(scales, 1, F32)]
    }
}

impl Cost for Quantization {
    // Comparison, division, clip and rounding per element; one division per scale.
    fn flops(&self, spec: &Spec) -> u64 {
        let (rows, cols) = self.output_shape(spec);
        if self.is_static() { 3 * rows * cols } else { 4 * rows * cols + rows }
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let (rows, cols) = self.output_shape(spec);
        (2 + 4) * rows * cols
    }
}

impl Operation for Quantization {
    fn suite(&self) -> Suite {
        Suite::Gemm
    }

    // Quantized values, and scales if there is one per row.
    fn set_rotation(&self, spec: &Spec) -> SetRotation {
        let input = if self.is_transposed() { RotationAxis::Columns } else { RotationAxis::Rows };
        let scales = if self.is_static() { RotationAxis::Fixed } else { RotationAxis::Rows };
        SetRotation::new(self.output_shape(spec).0, &[input], &[RotationAxis::Rows, scales])
    }
}
