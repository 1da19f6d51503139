//! Convolution by burn's operations. `fused` folds the batch normalization into weights and bias beforehand.

use super::{Conv2d, EPSILON};
use crate::{BurnPass, Pass, Spec, TensorValue};
use burn::tensor::activation::relu;
use burn::tensor::backend::Backend;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{DType, Tensor, module};

impl BurnPass for Conv2d {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        self.build_pass(spec, inputs, false)
    }

    fn fused_pass<B: Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        self.build_pass(spec, inputs, true)
    }
}

impl Conv2d {
    fn build_pass<B: Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>, folded: bool) -> Pass<B> {
        let [batch, channels, features, size, kernel] =
            ["batch", "in_channels", "out_channels", "size", "kernel"].map(|axis| spec.axis(axis) as usize);
        let padding = (kernel - 1) / 2;
        let mut inputs = inputs.into_iter().map(TensorValue::float);
        let mut next_input = || inputs.next().expect("as many inputs as the operator declares");
        let x = next_input().reshape([batch, channels, size, size]);
        let weight = next_input().reshape([features, channels, kernel, kernel]);
        let convolution = move |x: Tensor<B, 4>, weight: Tensor<B, 4>, bias: Option<Tensor<B, 1>>| {
            module::conv2d(x, weight, bias, ConvOptions::new([1, 1], [padding, padding], [1, 1], 1))
        };
        let has_relu = self.has_relu();
        let finish = move |y: Tensor<B, 4>| {
            let y = if has_relu { relu(y) } else { y };
            vec![TensorValue::Float(y.reshape([batch * features, size * size]))]
        };
        if !self.has_batch_norm() {
            let bias = next_input().reshape([features]);
            return Box::new(move || finish(convolution(x.clone(), weight.clone(), Some(bias.clone()))));
        }
        let [mean, variance, gain, bias] = [next_input(), next_input(), next_input(), next_input()];
        if folded {
            let (weight, bias) = fold_batch_norm(weight, [mean, variance, gain, bias]);
            return Box::new(move || finish(convolution(x.clone(), weight.clone(), Some(bias.clone()))));
        }
        let [mean, variance, gain, bias] =
            [mean, variance, gain, bias].map(|parameter| parameter.reshape([1, features, 1, 1]));
        // burn's own batch normalization, step by step.
        Box::new(move || {
            let y = convolution(x.clone(), weight.clone(), None);
            let normal = (y - mean.clone()) / (variance.clone() + EPSILON).sqrt();
            finish(normal * gain.clone() + bias.clone())
        })
    }
}

/// Folds a batch normalization (mean, variance, gain, bias) into convolution weights and a bias. Computed in f32,
/// rounded once.
fn fold_batch_norm<B: Backend>(weight: Tensor<B, 4>, normalization: [Tensor<B, 2>; 4]) -> (Tensor<B, 4>, Tensor<B, 1>) {
    let (dtype, features) = (weight.dtype(), weight.dims()[0]);
    let [mean, variance, gain, bias] = normalization.map(|parameter| parameter.cast(DType::F32));
    let scale = gain / (variance + EPSILON).sqrt();
    let bias = bias - mean * scale.clone();
    let weight = weight.cast(DType::F32) * scale.reshape([features, 1, 1, 1]);
    (weight.cast(dtype), bias.cast(dtype).reshape([features]))
}
