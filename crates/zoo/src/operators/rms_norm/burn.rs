//! RMS normalization by burn's operations, in f32.

use super::RmsNorm;
use crate::operators::sequences::float_tensors;
use crate::{BurnPass, Pass, Spec, TensorValue, normalize};
use burn::tensor::DType;
use burn::tensor::backend::Backend;
use calorimeter_recipes::FloatType;

impl BurnPass for RmsNorm {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [x, gain] = float_tensors(inputs);
        Box::new(move || {
            let normal = normalize::rms_norm(x.clone().cast(DType::F32));
            vec![TensorValue::Float((normal * gain.clone().cast(DType::F32)).cast(dtype))]
        })
    }
}
