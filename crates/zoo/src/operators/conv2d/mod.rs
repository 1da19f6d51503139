//! A convolution with a ReLU or a batch normalisation behind it. Fused, the normalisation is folded into the weights.

use super::fusion_counts;
use super::product::weight;
use crate::gate::Tolerance;
use crate::operator::{Operation, Spec, Suite, burn_alone, floats};
use crate::{
    Counts, Device, Fill, FusionModel, Implementation, Matrix, Operand, Operator, Pass, Sample, Slot, Value, ZooError,
};
use burn::tensor::activation::relu;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{DType, Tensor, backend::Backend, module};

/// What follows the convolution, whose stride is 1 and whose padding keeps the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Conv2d {
    /// A ReLU; this convolution has a bias.
    Relu,
    /// A batch normalisation with known statistics.
    Bn,
    /// The normalisation and a ReLU.
    BnRelu,
}

const EPSILON: f64 = 1e-5;

/// Sizes of the tensors, counted in numbers.
struct Numbers {
    x: u64,
    weights: u64,
    features: u64,
    y: u64,
    /// Products for each number of the output.
    taps: u64,
}

fn numbers(spec: &Spec) -> Numbers {
    let (batch, features, pixels) = (spec.axis("batch"), spec.axis("out_channels"), spec.axis("size").pow(2));
    let taps = spec.axis("in_channels") * spec.axis("kernel").pow(2);
    let x = batch * spec.axis("in_channels") * pixels;
    Numbers { x, weights: features * taps, features, y: batch * features * pixels, taps }
}

impl Conv2d {
    fn normalises(self) -> bool {
        self != Self::Relu
    }

    fn relu(self) -> bool {
        matches!(self, Self::Relu | Self::BnRelu)
    }
}

impl Operation for Conv2d {
    const ABOUT: &'static str = "2-D convolution (NCHW, stride 1, same size) with ReLU, batch normalisation, or both";
    const SUITE: Suite = Suite::Fusion;

    fn all() -> Vec<Self> {
        vec![Self::Relu, Self::Bn, Self::BnRelu]
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Relu => "conv2d_relu",
            Self::Bn => "conv2d_bn",
            Self::BnRelu => "conv2d_bn_relu",
        }
    }

    fn axes(&self) -> &'static [&'static str] {
        &["batch", "in_channels", "out_channels", "size", "kernel"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        floats(self.name(), spec)?;
        match spec.axis("kernel") {
            kernel if kernel.is_multiple_of(2) => {
                let name = self.name();
                Err(ZooError::Shape(format!("{name}: kernel is {kernel}; an odd one keeps the size of the image")))
            }
            _ => Ok(()),
        }
    }

    // Image, weights; then a bias, or mean, variance, gain and bias of the normalisation.
    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let Numbers { features, taps, .. } = numbers(spec);
        let image =
            Operand::normal(spec.axis("batch") * spec.axis("in_channels"), spec.axis("size").pow(2), spec.element);
        let one = Operand::normal(1, features, spec.element);
        let positive = one.filled(Fill::Uniform(0.5, 1.5));
        let mut inputs = vec![image, weight(features, taps, taps, spec)];
        inputs.extend(if self.normalises() { vec![one, positive, positive, one] } else { vec![one] });
        inputs
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let rows = spec.axis("batch") * spec.axis("out_channels");
        vec![Slot::new(rows, spec.axis("size").pow(2), spec.element)]
    }

    // Products and sums, padding included as everybody counts; a bias; difference, quotient, gain and bias of a
    // normalisation; a ReLU.
    fn flops(&self, spec: &Spec) -> u64 {
        let Numbers { y, taps, .. } = numbers(spec);
        let tail = if self.normalises() { 4 } else { 1 };
        y * (2 * taps + tail + u64::from(self.relu()))
    }

    // What goes from step to step, two of them at a time; folded weights live beside the given ones.
    fn intermediate(&self, spec: &Spec) -> u64 {
        let Numbers { weights, features, y, .. } = numbers(spec);
        let numbers = if self.normalises() { 2 * y + weights + features } else { y };
        numbers * fusion_counts::number_bytes(spec)
    }

    fn published(&self, spec: &Spec) -> Option<Counts> {
        fusion_counts::published(Operator::Conv2d(*self), spec)
    }

    // Folding is how a normalisation is fused.
    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        let Numbers { x, weights, features, y, .. } = numbers(spec);
        let bias = if self.normalises() { 0 } else { features };
        let mut kernels = vec![("conv2d", x + weights + bias + y)];
        if self.normalises() {
            kernels.push(("batch_norm", 2 * y + 4 * features));
        }
        if self.relu() {
            kernels.push(("relu", 2 * y));
        }
        let fused = (x + weights + features + y) * fusion_counts::number_bytes(spec);
        Some(fusion_counts::model(spec, &kernels, fused))
    }

    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        numbers(spec).taps
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let [channels, features, size, kernel] =
            ["in_channels", "out_channels", "size", "kernel"].map(|axis| spec.axis(axis) as usize);
        let padding = (kernel - 1) / 2;
        let parameter = |input: usize, feature: usize| f64::from(inputs[input].row(0)[feature]);
        sample.by_elements(|row, col| {
            let (image, feature) = (row / features, row % features);
            let (top, left) = (col / size, col % size);
            let weights = inputs[1].row(feature);
            // The image's row or column under a tap, unless that is padding.
            let under = |edge: usize, tap: usize| (edge + tap).checked_sub(padding).filter(|&at| at < size);
            let mut sum = 0.0;
            for channel in 0..channels {
                let pixels = inputs[0].row(image * channels + channel);
                let weights = &weights[channel * kernel * kernel..][..kernel * kernel];
                for (i, y) in (0..kernel).filter_map(|i| under(top, i).map(|y| (i, y))) {
                    for (j, x) in (0..kernel).filter_map(|j| under(left, j).map(|x| (j, x))) {
                        sum += f64::from(pixels[y * size + x]) * f64::from(weights[i * kernel + j]);
                    }
                }
            }
            let y = if self.normalises() {
                let normal = (sum - parameter(2, feature)) / (parameter(3, feature) + EPSILON).sqrt();
                normal * parameter(4, feature) + parameter(5, feature)
            } else {
                sum + parameter(2, feature)
            };
            if self.relu() { y.max(0.0) } else { y }
        })
    }

    // Product and bias; or product, deviation (two), difference, quotient, gain and bias.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        let roundings = if self.normalises() { 7 } else { 2 };
        Tolerance::new(spec.dtype(), roundings, numbers(spec).taps)
    }

    // Folding needs no kernel of its own: it fuses on every device.
    fn supported(&self, _: &Spec, implementation: Implementation, device: Device) -> Result<(), String> {
        match implementation {
            Implementation::Fused if self.normalises() => Ok(()),
            other => burn_alone(self.name(), other, device),
        }
    }

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
        if !self.normalises() {
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
        // The steps of burn's own batch normalisation.
        Box::new(move || {
            let y = convolution(x.clone(), weight.clone(), None);
            let normal = (y - mean.clone()) / (variance.clone() + EPSILON).sqrt();
            done(normal * gain.clone() + bias.clone())
        })
    }
}

/// Weights and a bias that do what the weights with mean, variance, gain and bias of a normalisation do; in f32, then
/// rounded once.
fn fold<B: Backend>(weight: Tensor<B, 4>, normalisation: [Tensor<B, 2>; 4]) -> (Tensor<B, 4>, Tensor<B, 1>) {
    let (dtype, features) = (weight.dtype(), weight.dims()[0]);
    let [mean, variance, gain, bias] = normalisation.map(|parameter| parameter.cast(DType::F32));
    let scale = gain / (variance + EPSILON).sqrt();
    let bias = bias - mean * scale.clone();
    let weight = weight.cast(DType::F32) * scale.reshape([features, 1, 1, 1]);
    (weight.cast(dtype), bias.cast(dtype).reshape([features]))
}
