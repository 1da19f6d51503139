//! Parts shared by the row operators: a batch of sequences is a matrix `[batch * sequence, dimension]`.

use crate::gate::Tolerance;
use crate::{Operand, Slot, Spec, Value};
use burn::tensor::{Tensor, backend::Backend};

pub(super) const AXES: &[&str] = &["batch", "sequence", "dimension"];

/// Rows and columns of the matrix.
pub(super) fn size(spec: &Spec) -> (u64, u64) {
    (spec.axis("batch") * spec.axis("sequence"), spec.axis("dimension"))
}

/// Elements of the matrix.
pub(super) fn count(spec: &Spec) -> u64 {
    let (rows, cols) = size(spec);
    rows * cols
}

/// Bytes of the matrix in its dtype.
pub(super) fn stored(spec: &Spec) -> u64 {
    whole(spec).bytes()
}

/// Bytes of `copies` copies of the matrix in f32.
pub(super) fn copies(spec: &Spec, copies: u64) -> u64 {
    4 * copies * count(spec)
}

/// Input of the full matrix shape, standard normal.
pub(super) fn input(spec: &Spec) -> Operand {
    let (rows, cols) = size(spec);
    Operand::normal(rows, cols, spec.element)
}

/// Output of the full matrix shape.
pub(super) fn whole(spec: &Spec) -> Slot {
    let (rows, cols) = size(spec);
    Slot::new(rows, cols, spec.element)
}

/// Tolerance of elementwise functions of one or two inputs.
pub(super) fn element_wise(spec: &Spec) -> Tolerance {
    // An exponential and the operations around it: a few roundings in f32.
    Tolerance::new(spec.dtype(), 1, 16)
}

/// Inputs as float tensors.
pub(super) fn floats<B: Backend, const N: usize>(inputs: Vec<Value<B>>) -> [Tensor<B, 2>; N] {
    let tensors: Vec<_> = inputs.into_iter().map(Value::float).collect();
    tensors.try_into().expect("as many inputs as the operator declares")
}
