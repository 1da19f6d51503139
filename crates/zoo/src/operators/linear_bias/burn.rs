//! Linear layer with bias and activation by burn's operations.

use super::LinearBias;
use crate::{Activate, BurnPass, Pass, Spec, Value};
use burn::tensor::backend::Backend;

impl BurnPass for LinearBias {
    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let [x, weight, bias] =
            inputs.try_into().map(|inputs: [Value<B>; 3]| inputs.map(Value::float)).expect("three inputs");
        let activation = self.activation();
        Box::new(move || {
            let y = x.clone().matmul(weight.clone().transpose()) + bias.clone();
            vec![Value::Float(match activation {
                Some(activation) => activation.apply(y),
                None => y,
            })]
        })
    }
}
