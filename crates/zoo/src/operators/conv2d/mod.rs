//! `conv2d_relu`, `conv2d_bn` and `conv2d_bn_relu`: a 2-D convolution followed by ReLU, batch normalization or both.
//!
//! x is NCHW `[batch * in_channels, size²]`, weights are `[out_channels, in_channels * kernel²]`, and y is
//! `[batch * out_channels, size²]`. The stride is 1 and the padding keeps the image size. `fused` folds the
//! normalization into the weights.

mod burn;
#[cfg(feature = "native")]
mod native;
mod reference;

use crate::operation::require_floats;
use crate::operators::matmul::weight;
use crate::operators::presets::{CONVOLUTION_SHAPES, Preset};
use crate::operators::traffic;
use crate::registry::table::Zoo;
use crate::{
    Cost, Fill, FusionModel, ImageLayout, Operand, Operation, OutputSlot, RotationAxis, SetRotation, Signature, Spec,
    Suite, ZooError,
};
use calorimeter_recipes::{Dtype, Element};
use calorimeter_shapes::Axes;

/// Epilogue of the convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Conv2d {
    /// Bias and ReLU.
    Relu,
    /// Batch normalization with given statistics.
    Bn,
    /// Batch normalization with given statistics, then ReLU.
    BnRelu,
}

const EPSILON: f64 = 1e-5;

/// Tensor sizes in elements.
struct ConvTensorSizes {
    x: u64,
    weights: u64,
    features: u64,
    y: u64,
    /// Multiply-adds per output element: in_channels * kernel².
    taps: u64,
}

fn tensor_sizes(spec: &Spec) -> ConvTensorSizes {
    let (batch, features, pixels) = (spec.axis("batch"), spec.axis("out_channels"), spec.axis("size").pow(2));
    let taps = spec.axis("in_channels") * spec.axis("kernel").pow(2);
    let x = batch * spec.axis("in_channels") * pixels;
    ConvTensorSizes { x, weights: features * taps, features, y: batch * features * pixels, taps }
}

impl Conv2d {
    fn has_batch_norm(self) -> bool {
        self != Self::Relu
    }

    fn has_relu(self) -> bool {
        matches!(self, Self::Relu | Self::BnRelu)
    }
}

impl Conv2d {
    /// Checks the dtype: the CUDA implementation needs operands that tensor cores take without rounding.
    fn check_native(&self, spec: &Spec) -> Result<(), String> {
        match spec.element {
            Element::Float(Dtype::F16 | Dtype::Bf16) => Ok(()),
            other => Err(format!("`native` runs {} in f16 and bf16, not in {other}", self.name())),
        }
    }
}

/// Registers the convolutions with their implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators([Conv2d::Relu]).burn().native_where(Conv2d::check_native);
    zoo.operators([Conv2d::Bn, Conv2d::BnRelu]).burn().fused_on_cpu().native_where(Conv2d::check_native);
}

impl Signature for Conv2d {
    fn name(&self) -> &'static str {
        match self {
            Self::Relu => "conv2d_relu",
            Self::Bn => "conv2d_bn",
            Self::BnRelu => "conv2d_bn_relu",
        }
    }

    fn description(&self) -> &'static str {
        "2-D convolution (NCHW, stride 1, same size) with ReLU, batch normalization or both"
    }

    fn axes(&self) -> &'static [&'static str] {
        &["batch", "in_channels", "out_channels", "size", "kernel"]
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        require_floats(self.name(), spec)?;
        match spec.axis("kernel") {
            kernel if kernel.is_multiple_of(2) => {
                let name = self.name();
                Err(ZooError::Shape(format!(
                    "{name}: kernel is {kernel}; expected an odd size, which keeps the image size"
                )))
            }
            _ => Ok(()),
        }
    }

    // Image and weights; then the bias, or mean, variance, gain and bias of the normalization.
    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let ConvTensorSizes { features, taps, .. } = tensor_sizes(spec);
        let [channels, pixels] = [spec.axis("in_channels"), spec.axis("size").pow(2)];
        let images = Operand::normal(spec.axis("batch") * channels, pixels, spec.element)
            .with_images(ImageLayout { channels, pixels });
        let filters = weight(features, taps, taps, spec)
            .with_images(ImageLayout { channels, pixels: spec.axis("kernel").pow(2) });
        let one = Operand::normal(1, features, spec.element).with_fill(Fill::NormalUnscaled);
        let positive = one.with_fill(Fill::Uniform(0.5, 1.5));
        let mut inputs = vec![images, filters];
        inputs.extend(if self.has_batch_norm() { vec![one, positive, positive, one] } else { vec![one] });
        inputs
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        let [channels, pixels] = [spec.axis("out_channels"), spec.axis("size").pow(2)];
        let images = OutputSlot::new(spec.axis("batch") * channels, pixels, spec.element);
        vec![images.with_images(ImageLayout { channels, pixels })]
    }
}

impl Cost for Conv2d {
    // Multiply-adds, including those on padding, as is customary; the bias, or difference, quotient, gain and bias of
    // the normalization; the ReLU.
    fn flops(&self, spec: &Spec) -> u64 {
        let ConvTensorSizes { y, taps, .. } = tensor_sizes(spec);
        let tail = if self.has_batch_norm() { 4 } else { 1 };
        y * (2 * taps + tail + u64::from(self.has_relu()))
    }

    // Tensors between steps, two live at a time. Folded weights exist in addition to the given ones.
    fn intermediate(&self, spec: &Spec) -> u64 {
        let ConvTensorSizes { weights, features, y, .. } = tensor_sizes(spec);
        let elements = if self.has_batch_norm() { 2 * y + weights + features } else { y };
        elements * traffic::element_bytes(spec)
    }

    // The fused kernel is the convolution with folded weights.
    fn fusion(&self, spec: &Spec) -> Option<FusionModel> {
        let ConvTensorSizes { x, weights, features, y, .. } = tensor_sizes(spec);
        let bias = if self.has_batch_norm() { 0 } else { features };
        let mut kernels = vec![("conv2d", x + weights + bias + y)];
        if self.has_batch_norm() {
            kernels.push(("batch_norm", 2 * y + 4 * features));
        }
        if self.has_relu() {
            kernels.push(("relu", 2 * y));
        }
        let fused = (x + weights + features + y) * traffic::element_bytes(spec);
        Some(traffic::fusion_model(spec, &kernels, fused))
    }

    fn matmuls(&self) -> u32 {
        1
    }
}

impl Operation for Conv2d {
    fn suite(&self) -> Suite {
        Suite::Fusion
    }

    // Buffer sets rotate by images; with a single image all sets are equal.
    fn set_rotation(&self, spec: &Spec) -> SetRotation {
        SetRotation::new(spec.axis("batch"), &[RotationAxis::Rows], &[RotationAxis::Rows])
    }

    fn sizes(&self, preset: Preset) -> Vec<Axes> {
        preset.first_shapes(self.axes(), CONVOLUTION_SHAPES)
    }
}
