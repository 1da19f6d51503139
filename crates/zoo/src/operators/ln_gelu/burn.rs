//! `ln_gelu` by burn's operations, in f32.

use super::LnGelu;
use crate::operators::layer_norm;
use crate::operators::sequences::float_tensors;
use crate::{Activate, Activation, BurnPass, Pass, Spec, TensorValue};
use burn::tensor::DType;
use burn::tensor::backend::Backend;
use calorimeter_recipes::FloatType;

impl BurnPass for LnGelu {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [x, gain, bias] = float_tensors(inputs);
        Box::new(move || {
            let normal = layer_norm::burn::affine_layer_norm(x.clone().cast(DType::F32), &gain, &bias);
            vec![TensorValue::Float(Activation::Gelu.apply(normal).cast(dtype))]
        })
    }
}
