//! `swiglu` by burn's operations, in f32.

use super::Swiglu;
use crate::operators::sequences::float_tensors;
use crate::{Activate, Activation, BurnPass, Pass, Spec, TensorValue};
use burn::tensor::DType;
use burn::tensor::backend::Backend;
use calorimeter_recipes::FloatType;

impl BurnPass for Swiglu {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [gate, up] = float_tensors(inputs);
        Box::new(move || {
            let gate = Activation::Silu.apply(gate.clone().cast(DType::F32));
            vec![TensorValue::Float((gate * up.clone().cast(DType::F32)).cast(dtype))]
        })
    }
}
