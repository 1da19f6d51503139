//! Softmax by burn's operations, in f32.

use super::Softmax;
use crate::operators::sequences::float_tensors;
use crate::{BurnPass, Pass, Spec, TensorValue};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, activation};
use calorimeter_recipes::FloatType;

impl BurnPass for Softmax {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [x] = float_tensors(inputs);
        Box::new(move || vec![TensorValue::Float(activation::softmax(x.clone().cast(DType::F32), 1).cast(dtype))])
    }
}
