//! `ln_gelu` by burn's operations, in f32.

use super::LnGelu;
use crate::operators::layer_norm;
use crate::operators::sequences::floats;
use crate::{Activate, Activation, BurnPass, Pass, Spec, Value};
use burn::tensor::DType;
use burn::tensor::backend::Backend;
use calorimeter_recipes::FloatType;

impl BurnPass for LnGelu {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [x, gain, bias] = floats(inputs);
        Box::new(move || {
            let normal = layer_norm::burn::apply(x.clone().cast(DType::F32), &gain, &bias);
            vec![Value::Float(Activation::Gelu.apply(normal).cast(dtype))]
        })
    }
}
