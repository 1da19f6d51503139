//! By burn's operations.

use super::LayerNorm;
use crate::operators::sequences::floats;
use crate::{BurnPass, Pass, Spec, Value, normalize};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor};
use calorimeter_recipes::FloatType;

impl BurnPass for LayerNorm {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [x, gain, bias] = floats(inputs);
        Box::new(move || vec![Value::Float(apply(x.clone().cast(DType::F32), &gain, &bias).cast(dtype))])
    }
}

/// Normalizes rows of f32.
pub fn apply<B: Backend>(x: Tensor<B, 2>, gain: &Tensor<B, 2>, bias: &Tensor<B, 2>) -> Tensor<B, 2> {
    normalize::layer_norm(x) * gain.clone().cast(DType::F32) + bias.clone().cast(DType::F32)
}
