//! Gated MLP by burn's operations: three matmuls, SiLU and a multiplication.

use super::SwigluMlp;
use crate::{Activate, Activation, BurnPass, Pass, Spec, TensorValue};
use burn::tensor::backend::Backend;

impl BurnPass for SwigluMlp {
    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let [x, gate, up, down] =
            inputs.try_into().map(|inputs: [TensorValue<B>; 4]| inputs.map(TensorValue::float)).expect("four inputs");
        Box::new(move || {
            let gate = Activation::Silu.apply(x.clone().matmul(gate.clone().transpose()));
            let hidden = gate * x.clone().matmul(up.clone().transpose());
            vec![TensorValue::Float(hidden.matmul(down.clone().transpose()))]
        })
    }
}
