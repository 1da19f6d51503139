//! Softmax by burn's operations, in f32.

use super::Softmax;
use crate::operators::sequences::floats;
use crate::{BurnPass, Pass, Spec, Value};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, activation};
use calorimeter_recipes::FloatType;

impl BurnPass for Softmax {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let [x] = floats(inputs);
        Box::new(move || vec![Value::Float(activation::softmax(x.clone().cast(DType::F32), 1).cast(dtype))])
    }
}
