//! Batches of sequences as rows: what operators on them have in common.

use crate::gate::Tolerance;
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

/// Bytes of one matrix as it is stored.
pub(super) fn stored(spec: &Spec) -> u64 {
    whole(spec).bytes()
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

/// For element-wise functions of an input or two.
pub(super) fn element_wise(spec: &Spec) -> Tolerance {
    // An exponential and what stands around it: a few roundings in f32.
    Tolerance::new(spec.dtype(), 1, 16)
}

/// The inputs as tensors of floats.
pub(super) fn floats<B: Backend, const N: usize>(inputs: Vec<Value<B>>) -> [Tensor<B, 2>; N] {
    let tensors: Vec<_> = inputs.into_iter().map(Value::float).collect();
    tensors.try_into().expect("an operator is given as many inputs as it declares")
}
