//! Quantizing bf16 matrices: codes of e4m3, or of e2m1 where [`Spec::output`] says so, and f32 scales that numbers are divided
//! by. Codes times scales are about the numbers.
//!
//! Scales and quotients are rounded to bf16. burn has no tensors of e2m1.

mod burn;
#[cfg(feature = "cuda")]
mod native;
mod reference;

use crate::operators::number_types::{BF16, F32, allow};
use crate::operators::product::column;
use crate::registry::table::Zoo;
use crate::{Along, Cost, Fill, Matrix, Moves, Operand, Operation, Signature, Slot, Spec, Suite, ZooError};
use calorimeter_recipes::Element;

/// A quantization by where its scales come from, and whether the matrix is transposed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Quantization {
    /// `quantization`: a scale for each row.
    Rows,
    /// `quantization_static_scaling`: one scale, which takes 224 to the format's largest number.
    Static,
    /// `transpose_quantization`: columns become rows, and each has a scale.
    Transposed,
    /// `transpose_quantization_static_scaling`
    TransposedStatic,
}

/// Of the codes, how many a correct kernel may have one step off: one that does not round the quotient has three in a
/// hundred.
const CROSSED: f64 = 1.0 / 32.0;

impl Quantization {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Rows, Self::Static, Self::Transposed, Self::TransposedStatic];

    /// Which codes the kernels write.
    fn natively(&self, spec: &Spec) -> Result<(), String> {
        match self.output(spec) {
            Element::E4m3 => Ok(()),
            other => Err(format!("`native` writes codes of e4m3 in this version, not {other}")),
        }
    }

    fn is_transposed(self) -> bool {
        matches!(self, Self::Transposed | Self::TransposedStatic)
    }

    fn is_static(self) -> bool {
        matches!(self, Self::Static | Self::TransposedStatic)
    }

    fn output(self, spec: &Spec) -> Element {
        spec.output.unwrap_or(Element::E4m3)
    }

    /// Rows and columns of the codes.
    fn size(self, spec: &Spec) -> (u64, u64) {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        if self.is_transposed() { (n, m) } else { (m, n) }
    }

    /// The numbers of a row of codes.
    fn row(self, matrix: &Matrix, row: usize) -> Vec<f32> {
        if self.is_transposed() { column(matrix, row) } else { matrix.row(row).to_vec() }
    }
}

/// Registers them with the ways to run them.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators(Quantization::ALL).burn().native_where(Quantization::natively);
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

    fn about(&self) -> &'static str {
        "codes and scales of a bf16 matrix"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["m", "n"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        allow(self.name(), spec, &[BF16], &[Element::E4m3, Element::E2m1])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let input = Operand::normal(spec.axis("m"), spec.axis("n"), BF16);
        // Some numbers are beyond what a fixed scale is made for.
        vec![if self.is_static() { input.filled(Fill::Uniform(-256.0, 256.0)) } else { input }]
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (rows, cols) = self.size(spec);
        let scales = if self.is_static() { 1 } else { rows };
        vec![Slot::new(rows, cols, self.output(spec)), Slot::new(scales, 1, F32)]
    }
}

impl Cost for Quantization {
    // A comparison, a division, a clip and a rounding for each number; a division for each scale.
    fn flops(&self, spec: &Spec) -> u64 {
        let (rows, cols) = self.size(spec);
        if self.is_static() { 3 * rows * cols } else { 4 * rows * cols + rows }
    }

    fn intermediate(&self, spec: &Spec) -> u64 {
        let (rows, cols) = self.size(spec);
        (2 + 4) * rows * cols
    }
}

impl Operation for Quantization {
    fn suite(&self) -> Suite {
        Suite::Gemm
    }

    // Codes and, where each row of codes has its own, scales.
    fn moves(&self, spec: &Spec) -> Moves {
        let input = if self.is_transposed() { Along::Columns } else { Along::Rows };
        let scales = if self.is_static() { Along::Nothing } else { Along::Rows };
        Moves::new(self.size(spec).0, &[input], &[Along::Rows, scales])
    }
}
