//! Batches of sequences as rows: what operators on them have in common.

use crate::{Operand, Slot, Spec, Value};
use burn::tensor::{Tensor, backend::Backend};

pub(super) const AXES: &[&str] = &["batch", "sequence", "dimension"];

/// Rows and columns.
pub(super) fn size(spec: &Spec) -> (u64, u64) {
    (spec.axis("batch") * spec.axis("sequence"), spec.axis("dimension"))
}

/// Numbers of one matrix.
pub(super) fn count(spec: &Spec) -> u64 {
    let (rows, cols) = size(spec);
    rows * cols
}

/// Bytes of so many f32 copies of one matrix.
pub(super) fn copies(spec: &Spec, copies: u64) -> u64 {
    4 * copies * count(spec)
}

/// An input of all rows and columns.
pub(super) fn input(spec: &Spec) -> Operand {
    let (rows, cols) = size(spec);
    Operand::normal(rows, cols, spec.element)
}

/// An output of all rows and columns.
pub(super) fn whole(spec: &Spec) -> Slot {
    let (rows, cols) = size(spec);
    Slot::new(rows, cols, spec.element)
}

/// The inputs as tensors of floats.
pub(super) fn floats<B: Backend, const N: usize>(inputs: Vec<Value<B>>) -> [Tensor<B, 2>; N] {
    let tensors: Vec<_> = inputs.into_iter().map(Value::float).collect();
    tensors.try_into().expect("an operator is given as many inputs as it declares")
}
