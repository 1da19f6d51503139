//! Mean squared error by burn's operations, in f32.

use super::MseLoss;
use crate::operators::loss;
use crate::operators::sequences::float_tensors;
use crate::{BurnPass, Pass, Spec, TensorValue};
use burn::tensor::DType;
use burn::tensor::backend::Backend;

impl BurnPass for MseLoss {
    fn pass<B: Backend>(&self, _: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let [x, y] = float_tensors(inputs);
        Box::new(move || {
            let difference = x.clone().cast(DType::F32) - y.clone().cast(DType::F32);
            vec![TensorValue::Float(loss::mean(difference.powi_scalar(2)))]
        })
    }
}
