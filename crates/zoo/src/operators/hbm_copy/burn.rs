//! Copy by burn's operations.

use super::HbmCopy;
use crate::{BurnPass, Pass, Spec, TensorValue};
use burn::tensor::backend::Backend;

impl BurnPass for HbmCopy {
    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let inputs: Vec<_> = inputs.into_iter().map(TensorValue::float).collect();
        // burn has no copy operation; a multiplication by 1 has equal values and traffic.
        Box::new(move || vec![TensorValue::Float(inputs[0].clone().mul_scalar(1.0))])
    }
}
