//! Elementwise operations by burn, in the dtype of the inputs.

use super::Elementwise;
use crate::{BurnPass, Pass, Spec, TensorValue};
use burn::tensor::activation;
use burn::tensor::backend::Backend;

impl BurnPass for Elementwise {
    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let inputs: Vec<_> = inputs.into_iter().map(TensorValue::float).collect();
        let operation = *self;
        Box::new(move || {
            let x = inputs[0].clone();
            let y = || inputs[1].clone();
            vec![TensorValue::Float(match operation {
                Self::TrainingAdd | Self::Add => x + y(),
                Self::SiluMul => activation::silu(x) * y(),
                Self::Sigmoid => activation::sigmoid(x),
            })]
        })
    }
}
