//! RMS normalization by burn's operations, in f32.

use super::RmsNorm;
use crate::operators::sequences::floats;
use crate::{BurnPass, Pass, Spec, Value, normalize};
use burn::tensor::DType;
use burn::tensor::backend::Backend;
use calorimeter_recipes::FloatType;

impl BurnPass for RmsNorm {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [x, gain] = floats(inputs);
        Box::new(move || {
            let normal = normalize::rms_norm(x.clone().cast(DType::F32));
            vec![Value::Float((normal * gain.clone().cast(DType::F32)).cast(dtype))]
        })
    }
}
