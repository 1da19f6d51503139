//! Layer normalization by burn's operations, in f32.

use super::LayerNorm;
use crate::operators::sequences::float_tensors;
use crate::{BurnPass, Pass, Spec, TensorValue, normalize};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor};
use calorimeter_recipes::FloatType;

impl BurnPass for LayerNorm {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [x, gain, bias] = float_tensors(inputs);
        Box::new(move || {
            vec![TensorValue::Float(affine_layer_norm(x.clone().cast(DType::F32), &gain, &bias).cast(dtype))]
        })
    }
}

/// layer_norm(x) * gain + bias of f32 rows.
pub(crate) fn affine_layer_norm<B: Backend>(x: Tensor<B, 2>, gain: &Tensor<B, 2>, bias: &Tensor<B, 2>) -> Tensor<B, 2> {
    normalize::layer_norm(x) * gain.clone().cast(DType::F32) + bias.clone().cast(DType::F32)
}
