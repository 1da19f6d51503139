//! `add_ln` by burn's operations: sum and normalization in f32, each output rounded once.

use super::AddLn;
use crate::operators::layer_norm;
use crate::operators::sequences::floats;
use crate::{BurnPass, Pass, Spec, Value};
use burn::tensor::DType;
use burn::tensor::backend::Backend;
use calorimeter_recipes::FloatType;

impl BurnPass for AddLn {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [x, residual, gain, bias] = floats(inputs);
        Box::new(move || {
            let sum = x.clone().cast(DType::F32) + residual.clone().cast(DType::F32);
            let normal = layer_norm::burn::apply(sum.clone(), &gain, &bias);
            vec![Value::Float(sum.cast(dtype)), Value::Float(normal.cast(dtype))]
        })
    }
}
