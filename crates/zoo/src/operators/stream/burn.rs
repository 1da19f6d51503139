//! STREAM kernels by burn's operations.

use super::{FACTOR, Stream};
use crate::{BurnPass, Pass, Spec, TensorValue};
use burn::tensor::backend::Backend;

impl BurnPass for Stream {
    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let inputs: Vec<_> = inputs.into_iter().map(TensorValue::float).collect();
        let kernel = *self;
        Box::new(move || {
            let first = inputs[0].clone();
            let second = || inputs[1].clone();
            vec![TensorValue::Float(match kernel {
                // burn has no copy operation; a multiplication by 1 has equal values and traffic.
                Stream::Copy => first.mul_scalar(1.0),
                Stream::Scale => first.mul_scalar(FACTOR),
                Stream::Add => first.add(second()),
                Stream::Triad => first.add(second().mul_scalar(FACTOR)),
            })]
        })
    }
}
