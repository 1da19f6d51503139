//! Linear layer with bias and activation by burn's operations.

use super::LinearBias;
use crate::{Activate, BurnPass, Pass, Spec, TensorValue};
use burn::tensor::backend::Backend;

impl BurnPass for LinearBias {
    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let [x, weight, bias] =
            inputs.try_into().map(|inputs: [TensorValue<B>; 3]| inputs.map(TensorValue::float)).expect("three inputs");
        let activation = self.activation();
        Box::new(move || {
            let y = x.clone().matmul(weight.clone().transpose()) + bias.clone();
            vec![TensorValue::Float(match activation {
                Some(activation) => activation.apply(y),
                None => y,
            })]
        })
    }
}
