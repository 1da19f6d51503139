//! By burn's operations.

use super::{Conv2d, EPSILON};
use crate::{BurnPass, Pass, Spec, Value};
use burn::tensor::activation::relu;
use burn::tensor::backend::Backend;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{DType, Tensor, module};

impl BurnPass for Conv2d {
    fn pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        self.made(spec, inputs, false)
    }

    fn fused_pass<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        self.made(spec, inputs, true)
    }
}

impl Conv2d {
    fn made<B: Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>, folded: bool) -> Pass<B> {
        let [batch, channels, features, size, kernel] =
            ["batch", "in_channels", "out_channels", "size", "kernel"].map(|axis| spec.axis(axis) as usize);
        let padding = (kernel - 1) / 2;
        let mut inputs = inputs.into_iter().map(Value::float);
        let mut next = || inputs.next().expect("as many inputs as the operator declares");
        let x = next().reshape([batch, channels, size, size]);
        let weight = next().reshape([features, channels, kernel, kernel]);
        let convolution = move |x: Tensor<B, 4>, weight: Tensor<B, 4>, bias: Option<Tensor<B, 1>>| {
            module::conv2d(x, weight, bias, ConvOptions::new([1, 1], [padding, padding], [1, 1], 1))
        };
        let relus = self.relu();
        let done = move |y: Tensor<B, 4>| {
            let y = if relus { relu(y) } else { y };
            vec![Value::Float(y.reshape([batch * features, size * size]))]
        };
        if !self.normalizes() {
            let bias = next().reshape([features]);
            return Box::new(move || done(convolution(x.clone(), weight.clone(), Some(bias.clone()))));
        }
        let [mean, variance, gain, bias] = [next(), next(), next(), next()];
        if folded {
            let (weight, bias) = fold(weight, [mean, variance, gain, bias]);
            return Box::new(move || done(convolution(x.clone(), weight.clone(), Some(bias.clone()))));
        }
        let [mean, variance, gain, bias] =
            [mean, variance, gain, bias].map(|parameter| parameter.reshape([1, features, 1, 1]));
        // The steps of burn's own batch normalization.
        Box::new(move || {
            let y = convolution(x.clone(), weight.clone(), None);
            let normal = (y - mean.clone()) / (variance.clone() + EPSILON).sqrt();
            done(normal * gain.clone() + bias.clone())
        })
    }
}

/// Weights and a bias that do what the weights with mean, variance, gain and bias of a normalization do; in f32, then
/// rounded once.
fn fold<B: Backend>(weight: Tensor<B, 4>, normalization: [Tensor<B, 2>; 4]) -> (Tensor<B, 4>, Tensor<B, 1>) {
    let (dtype, features) = (weight.dtype(), weight.dims()[0]);
    let [mean, variance, gain, bias] = normalization.map(|parameter| parameter.cast(DType::F32));
    let scale = gain / (variance + EPSILON).sqrt();
    let bias = bias - mean * scale.clone();
    let weight = weight.cast(DType::F32) * scale.reshape([features, 1, 1, 1]);
    (weight.cast(dtype), bias.cast(dtype).reshape([features]))
}
