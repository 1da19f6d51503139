//! `add_ln` by burn's operations: sum and normalization in f32, each output rounded once.

use super::AddLn;
use crate::operators::layer_norm;
use crate::operators::sequences::float_tensors;
use crate::{BurnPass, Pass, Spec, TensorValue};
use burn::tensor::DType;
use burn::tensor::backend::Backend;
use calorimeter_recipes::FloatType;

impl BurnPass for AddLn {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [x, residual, gain, bias] = float_tensors(inputs);
        Box::new(move || {
            let sum = x.clone().cast(DType::F32) + residual.clone().cast(DType::F32);
            let normal = layer_norm::burn::affine_layer_norm(sum.clone(), &gain, &bias);
            vec![TensorValue::Float(sum.cast(dtype)), TensorValue::Float(normal.cast(dtype))]
        })
    }
}
