//! A convolution with a ReLU or a batch normalization behind it. Fused, the normalization is folded into the weights.

mod burn;
#[cfg(feature = "cuda")]
mod native;
mod reference;

use crate::operation::floats_alone;
use crate::operators::presets::{CONVOLUTION, Preset};
use crate::operators::product::weight;
use crate::operators::traffic;
use crate::registry::table::Zoo;
use crate::{Along, Cost, Fill, FusionModel, Moves, Operand, Operation, Signature, Slot, Spec, Suite, ZooError};
use calorimeter_recipes::{Dtype, Element};
use calorimeter_shapes::Axes;

/// What follows the convolution, whose stride is 1 and whose padding keeps the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Conv2d {
    /// A ReLU; this convolution has a bias.
    Relu,
    /// A batch normalization with known statistics.
    Bn,
    /// The normalization and a ReLU.
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
    fn normalizes(self) -> bool {
        self != Self::Relu
    }

    fn relu(self) -> bool {
        matches!(self, Self::Relu | Self::BnRelu)
    }
}

impl Conv2d {
    /// What tensor cores take without rounding.
    fn natively(&self, spec: &Spec) -> Result<(), String> {
        match spec.element {
            Element::Float(Dtype::F16 | Dtype::Bf16) => Ok(()),
            other => Err(format!("`native` runs {} in f16 and bf16, not in {other}", self.name())),
        }
    }
}

/// Registers them with the ways to run them.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([Conv2d::Relu]).burn().native_where(Conv2d::natively);
    zoo.operators([Conv2d::Bn, Conv2d::BnRelu]).burn().folds().native_where(Conv2d::natively);
}

impl Signature for Conv2d {
    fn name(&self) -> &'static str {
        match self {
            Self::Relu => "conv2d_relu",
            Self::Bn => "conv2d_bn",
            Self::BnRelu => "conv2d_bn_relu",
        }
    }

    fn about(&self) -> &'static str {
        "2-D convolution (NCHW, stride 1, same size) with ReLU, batch normalization, or both"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["batch", "in_channels", "out_channels", "size", "kernel"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        floats_alone(self.name(), spec)?;
        match spec.axis("kernel") {
            kernel if kernel.is_multiple_of(2) => {
                let name = self.name();
                Err(ZooError::Shape(format!("{name}: kernel is {kernel}; an odd one keeps the size of the image")))
            }
            _ => Ok(()),
        }
    }

    // Image, weights; then a bias, or mean, variance, gain and bias of the normalization.
    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let Numbers { features, taps, .. } = numbers(spec);
        let image =
            Operand::normal(spec.axis("batch") * spec.axis("in_channels"), spec.axis("size").pow(2), spec.element);
        let one = Operand::normal(1, features, spec.element).filled(Fill::Even);
        let positive = one.filled(Fill::Uniform(0.5, 1.5));
        let mut inputs = vec![image, weight(features, taps, taps, spec)];
        inputs.extend(if self.normalizes() { vec![one, positive, positive, one] } else { vec![one] });
        inputs
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let rows = spec.axis("batch") * spec.axis("out_channels");
        vec![Slot::new(rows, spec.axis("size").pow(2), spec.element)]
    }
}

impl Cost for Conv2d {
    // Products and sums, padding included as everybody counts; a bias; difference, quotient, gain and bias of a
    // normalization; a ReLU.
    fn flops(&self, spec: &Spec) -> u64 {
        let Numbers { y, taps, .. } = numbers(spec);
        let tail = if self.normalizes() { 4 } else { 1 };
        y * (2 * taps + tail + u64::from(self.relu()))
    }

    // What goes from step to step, two of them at a time; folded weights live beside the given ones.
    fn intermediate(&self, spec: &Spec) -> u64 {
        let Numbers { weights, features, y, .. } = numbers(spec);
        let numbers = if self.normalizes() { 2 * y + weights + features } else { y };
        numbers * traffic::number_bytes(spec)
    }

    // Folding is how a normalization is fused.
    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        let Numbers { x, weights, features, y, .. } = numbers(spec);
        let bias = if self.normalizes() { 0 } else { features };
        let mut kernels = vec![("conv2d", x + weights + bias + y)];
        if self.normalizes() {
            kernels.push(("batch_norm", 2 * y + 4 * features));
        }
        if self.relu() {
            kernels.push(("relu", 2 * y));
        }
        let fused = (x + weights + features + y) * traffic::number_bytes(spec);
        Some(traffic::model(spec, &kernels, fused))
    }

    fn products(&self) -> u32 {
        1
    }
}

impl Operation for Conv2d {
    fn suite(&self) -> Suite {
        Suite::Fusion
    }

    // Images move; where there is only one, all sets are alike.
    fn moves(&self, spec: &Spec) -> Moves {
        Moves::new(spec.axis("batch"), &[Along::Rows], &[Along::Rows])
    }

    fn sizes(&self, preset: Preset) -> Vec<Axes> {
        preset.first(self.axes(), CONVOLUTION)
    }
}
