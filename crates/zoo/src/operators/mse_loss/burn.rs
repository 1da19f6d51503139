//! Mean squared error by burn's operations, in f32.

use super::MseLoss;
use crate::operators::loss;
use crate::operators::sequences::floats;
use crate::{BurnPass, Pass, Spec, Value};
use burn::tensor::DType;
use burn::tensor::backend::Backend;

impl BurnPass for MseLoss {
    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        let [x, y] = floats(inputs);
        Box::new(move || {
            let difference = x.clone().cast(DType::F32) - y.clone().cast(DType::F32);
            vec![Value::Float(loss::mean(difference.powi_scalar(2)))]
        })
    }
}
