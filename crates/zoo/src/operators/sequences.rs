//! Parts shared by the row operators: a batch of sequences is a matrix `[batch * sequence, dimension]`.

use crate::gate::Tolerance;
use crate::{Operand, OutputSlot, Spec, TensorValue};
use burn::tensor::{Tensor, backend::Backend};

pub(super) const AXES: &[&str] = &["batch", "sequence", "dimension"];

/// Rows and columns of the matrix.
pub(super) fn size(spec: &Spec) -> (u64, u64) {
    (spec.axis("batch") * spec.axis("sequence"), spec.axis("dimension"))
}

/// Elements of the matrix.
pub(super) fn element_count(spec: &Spec) -> u64 {
    let (rows, cols) = size(spec);
    rows * cols
}

/// Bytes of the matrix in its dtype.
pub(super) fn matrix_bytes(spec: &Spec) -> u64 {
    row_output(spec).bytes()
}

/// Bytes of `copies` copies of the matrix in f32.
pub(super) fn f32_copies_bytes(spec: &Spec, copies: u64) -> u64 {
    4 * copies * element_count(spec)
}

/// Input of the full matrix shape, standard normal.
pub(super) fn row_input(spec: &Spec) -> Operand {
    let (rows, cols) = size(spec);
    Operand::normal(rows, cols, spec.element)
}

/// Output of the full matrix shape.
pub(super) fn row_output(spec: &Spec) -> OutputSlot {
    let (rows, cols) = size(spec);
    OutputSlot::new(rows, cols, spec.element)
}

/// Tolerance of elementwise functions of one or two inputs.
pub(super) fn elementwise_tolerance(spec: &Spec) -> Tolerance {
    // An exponential and the operations around it: a few roundings in f32.
    Tolerance::new(spec.dtype(), 1, 16)
}

/// Inputs as float tensors.
pub(super) fn float_tensors<B: Backend, const N: usize>(inputs: Vec<TensorValue<B>>) -> [Tensor<B, 2>; N] {
    let tensors: Vec<_> = inputs.into_iter().map(TensorValue::float).collect();
    tensors.try_into().expect("as many inputs as the operator declares")
}
