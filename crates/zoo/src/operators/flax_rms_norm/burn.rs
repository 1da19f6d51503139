//! RMS normalization and its gradients by burn's operations, in f32.

use super::{EPSILON, FlaxRmsNorm};
use crate::{BurnPass, Pass, Spec, TensorValue};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor};
use calorimeter_recipes::FloatType;

impl BurnPass for FlaxRmsNorm {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        let dtype = spec.dtype().burn();
        let inputs: Vec<_> = inputs.into_iter().map(TensorValue::float).collect();
        Box::new(move || {
            let x = inputs[0].clone().cast(DType::F32);
            let scale = inverse_rms_of_rows(&x);
            let weight = inputs[1].clone();
            let Some(dy) = inputs.get(2) else {
                return vec![TensorValue::Float((x * scale * weight).cast(dtype))];
            };
            let dy = dy.clone().cast(DType::F32);
            let weighted = dy.clone() * weight;
            let shift = (weighted.clone() * x.clone()).mean_dim(1) * scale.clone().powi_scalar(3);
            let dx = weighted * scale.clone() - x.clone() * shift;
            let dweight = (x * scale * dy).sum_dim(0);
            vec![TensorValue::Float(dx.cast(dtype)), TensorValue::Float(dweight)]
        })
    }
}

/// 1 / RMS of each row.
fn inverse_rms_of_rows<B: Backend>(x: &Tensor<B, 2>) -> Tensor<B, 2> {
    let mean = x.clone().powi_scalar(2).mean_dim(1);
    (mean + EPSILON).sqrt().recip()
}
