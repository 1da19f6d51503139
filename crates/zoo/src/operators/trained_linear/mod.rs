//! Training passes of a linear layer: forward y = x wᵀ, backward dx = g w and dw = gᵀ x for the gradient g of y, and
//! the optimizer step of w.
//!
//! x is `[m, k]`, w is `[n, k]`, y and g are `[m, n]`. The training recipe selects the matmuls that run in float8.
//! Moments of the optimizer are f32 for every dtype of the weights.

mod burn;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cube;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub(super) mod cube_optimizers;
#[cfg(feature = "native")]
mod native;
#[cfg(feature = "native")]
pub(super) mod native_layer;
mod operands;
pub(super) mod optimizers;
mod reference;

use crate::operators::dtypes::{BF16, F32, check_dtypes};
use crate::operators::matmul::{AXES, size, weight};
use crate::parts::{BACKWARD, FORWARD, OPTIMIZER};
use crate::registry::table::Zoo;
use crate::{
    Cost, Fill, Implementation, Operand, Operation, OutputSlot, RotationAxis, SetRotation, Signature, Spec, Suite,
    ZooError,
};
use calorimeter_recipes::Element;

/// Training pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TrainedLinear {
    /// Forward.
    Forward,
    /// Gradients of the input and of the weights.
    Backward,
    /// Forward and backward.
    ForwardBackward,
    /// AdamW: weights and moments after a step.
    Adamw,
    /// SGD without momentum: weights after a step.
    Sgd,
    /// Forward, backward and AdamW.
    AdamwStep,
    /// Forward, backward and SGD.
    SgdStep,
}

/// Output of a training pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassOutput {
    Output,
    GradInput,
    GradWeight,
    Weight,
    /// First (0) or second (1) moment: running mean of the gradients or of their squares.
    Moment(usize),
}

/// Input of a training pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassInput {
    Input,
    Weight,
    GradOutput,
    GradWeight,
    Moment(usize),
}

impl TrainedLinear {
    /// All training passes.
    pub const ALL: [Self; 7] =
        [Self::Forward, Self::Backward, Self::ForwardBackward, Self::Adamw, Self::Sgd, Self::AdamwStep, Self::SgdStep];

    pub(super) fn pass_inputs(self) -> &'static [PassInput] {
        use PassInput::{GradOutput, GradWeight, Input, Moment, Weight};
        match self {
            Self::Forward => &[Input, Weight],
            Self::Backward | Self::ForwardBackward => &[Input, Weight, GradOutput],
            Self::Adamw => &[Weight, GradWeight, Moment(0), Moment(1)],
            Self::Sgd => &[Weight, GradWeight],
            Self::AdamwStep => &[Input, Weight, GradOutput, Moment(0), Moment(1)],
            Self::SgdStep => &[Input, Weight, GradOutput],
        }
    }

    pub(super) fn pass_outputs(self) -> &'static [PassOutput] {
        use PassOutput::{GradInput, GradWeight, Moment, Output, Weight};
        match self {
            Self::Forward => &[Output],
            Self::Backward => &[GradInput, GradWeight],
            Self::ForwardBackward => &[Output, GradInput, GradWeight],
            Self::Adamw => &[Weight, Moment(0), Moment(1)],
            Self::Sgd => &[Weight],
            Self::AdamwStep => &[Output, GradInput, Weight, Moment(0), Moment(1)],
            Self::SgdStep => &[Output, GradInput, Weight],
        }
    }

    /// Number of matmuls.
    pub(super) fn matmul_count(self) -> u64 {
        match self {
            Self::Forward => 1,
            Self::Backward => 2,
            Self::ForwardBackward | Self::AdamwStep | Self::SgdStep => 3,
            Self::Adamw | Self::Sgd => 0,
        }
    }

    /// Optimizer operations per weight; `None` for passes without an optimizer.
    pub(super) fn optimizer_flops(self) -> Option<u64> {
        match self {
            Self::Adamw | Self::AdamwStep => Some(optimizers::ADAMW_FLOPS),
            Self::Sgd | Self::SgdStep => Some(optimizers::SGD_FLOPS),
            Self::Forward | Self::Backward | Self::ForwardBackward => None,
        }
    }

    /// Name of this pass for a model.
    pub fn model_pass_name(self, model: &str) -> String {
        format!("{model}{}", self.name().trim_start_matches("linear"))
    }

    /// Checks that a CubeCL kernel takes part in the pass: a float8 cast or an optimizer step.
    pub(super) fn check_cube(self, name: &str, spec: &Spec) -> Result<(), String> {
        if spec.training.is_some() || self.optimizer_flops().is_some() {
            return Ok(());
        }
        Err(format!(
            "{name} has no `cube` kernel without a recipe: the CubeCL kernels cast operands to float8 and run \
             optimizer steps; use `eager` or `fused`"
        ))
    }

    /// True for optimizer steps without a matmul, on which the training recipe has no effect.
    pub fn is_optimizer(self) -> bool {
        self.matmul_count() == 0
    }
}

/// Registers the training passes with their implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators(TrainedLinear::ALL).burn().cube_where(|pass, spec| pass.check_cube(pass.name(), spec)).native();
}

impl Signature for TrainedLinear {
    fn name(&self) -> &'static str {
        match self {
            Self::Forward => "linear_forward",
            Self::Backward => "linear_backward",
            Self::ForwardBackward => "linear_forward_backward",
            Self::Adamw => "linear_adamw",
            Self::Sgd => "linear_sgd",
            Self::AdamwStep => "linear_adamw_step",
            Self::SgdStep => "linear_sgd_step",
        }
    }

    fn description(&self) -> &'static str {
        match self {
            Self::Forward => "forward pass of a linear layer",
            Self::Backward => "input and weight gradients of a linear layer",
            Self::ForwardBackward => "forward and backward pass of a linear layer",
            Self::Adamw => "AdamW step of a linear layer, moments in f32",
            Self::Sgd => "SGD step of a linear layer",
            Self::AdamwStep => "forward, backward and AdamW step of a linear layer",
            Self::SgdStep => "forward, backward and SGD step of a linear layer",
        }
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    // f16 is not supported, because its gradients need loss scaling.
    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        check_dtypes(self.name(), spec, &[F32, BF16], &[])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, k, n) = size(spec);
        let operand = |input: &PassInput| match input {
            PassInput::Input => Operand::normal(m, k, spec.element),
            PassInput::Weight => weight(n, k, k, spec),
            PassInput::GradOutput => weight(m, n, m.max(n), spec),
            PassInput::GradWeight => Operand::normal(n, k, spec.element),
            PassInput::Moment(0) => Operand::normal(n, k, F32),
            // The second moment is a mean of squares, hence positive.
            PassInput::Moment(_) => Operand::normal(n, k, F32).with_fill(Fill::Uniform(0.5, 1.5)),
        };
        self.pass_inputs().iter().map(operand).collect()
    }

    fn outputs(&self, spec: &Spec) -> Vec<OutputSlot> {
        let (m, k, n) = size(spec);
        let slot = |output: &PassOutput| match output {
            PassOutput::Output => OutputSlot::new(m, n, spec.element),
            PassOutput::GradInput => OutputSlot::new(m, k, spec.element),
            PassOutput::GradWeight | PassOutput::Weight => OutputSlot::new(n, k, spec.element),
            PassOutput::Moment(_) => OutputSlot::new(n, k, F32),
        };
        self.pass_outputs().iter().map(slot).collect()
    }
}

impl Cost for TrainedLinear {
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        2 * self.matmul_count() * m * k * n + self.optimizer_flops().unwrap_or(0) * n * k
    }

    // In float8: quantized and f32 copies of the operands and f32 results, at most 9 bytes per element of x, w and y.
    // Optimizer: the gradient and f32 intermediates.
    fn intermediate(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        let all = m * k + n * k + m * n;
        let product = match spec.training {
            Some(_) if !self.is_optimizer() => 5 * all + 4 * all,
            _ => 0,
        };
        let gradient = if self.is_optimizer() { 0 } else { n * k * u64::from(spec.element.bits()) / 8 };
        let update = if self.optimizer_flops().is_some() { gradient + 3 * 4 * n * k } else { 0 };
        product + update
    }

    fn matmuls(&self) -> u32 {
        u32::from(!self.is_optimizer())
    }

    // burn multiplies floats only; e4m3 values are exact in f32.
    fn matmul_element(&self, spec: &Spec, implementation: Implementation) -> Element {
        match (spec.training, implementation) {
            (None, _) => spec.element,
            (Some(_), burn) if burn.uses_burn() => F32,
            (Some(_), _) => Element::E4m3,
        }
    }
}

impl Operation for TrainedLinear {
    fn suite(&self) -> Suite {
        Suite::Training
    }

    fn tokens(&self, spec: &Spec) -> Option<u64> {
        (!self.is_optimizer()).then(|| spec.axis("m"))
    }

    fn parts(&self) -> &'static [&'static str] {
        match self {
            Self::Forward => &[FORWARD],
            Self::Backward => &[BACKWARD],
            Self::ForwardBackward => &[FORWARD, BACKWARD],
            Self::Adamw | Self::Sgd => &[OPTIMIZER],
            Self::AdamwStep | Self::SgdStep => &[FORWARD, BACKWARD, OPTIMIZER],
        }
    }

    // A scale may cover 32 elements along any dimension, so buffer sets rotate by groups of 32.
    fn set_rotation(&self, spec: &Spec) -> SetRotation {
        use RotationAxis::{Columns, Fixed, Rows};
        const GROUP: u64 = 32;
        let (m, k, n) = size(spec);
        if self.is_optimizer() {
            return SetRotation::from_sizes(&self.inputs(spec), &self.outputs(spec));
        }
        let groups = |side: u64| Some(side / GROUP).filter(|groups| side.is_multiple_of(GROUP) && *groups > 1);
        let input_axes =
            |along: fn(&PassInput) -> RotationAxis| self.pass_inputs().iter().map(along).collect::<Vec<_>>();
        let output_axes =
            |along: fn(&PassOutput) -> RotationAxis| self.pass_outputs().iter().map(along).collect::<Vec<_>>();
        if let Some(parts) = groups(m) {
            let inputs =
                input_axes(
                    |input| if matches!(input, PassInput::Input | PassInput::GradOutput) { Rows } else { Fixed },
                );
            let outputs =
                output_axes(
                    |output| if matches!(output, PassOutput::Output | PassOutput::GradInput) { Rows } else { Fixed },
                );
            return SetRotation::new(parts, &inputs, &outputs);
        }
        if let Some(parts) = groups(n) {
            let inputs = input_axes(|input| match input {
                PassInput::Input => Fixed,
                PassInput::GradOutput => Columns,
                _ => Rows,
            });
            let outputs = output_axes(|output| match output {
                PassOutput::Output => Columns,
                PassOutput::GradInput => Fixed,
                _ => Rows,
            });
            return SetRotation::new(parts, &inputs, &outputs);
        }
        match groups(k) {
            Some(parts) => {
                let inputs = input_axes(|input| if *input == PassInput::GradOutput { Fixed } else { Columns });
                let outputs = output_axes(|output| if *output == PassOutput::Output { Fixed } else { Columns });
                SetRotation::new(parts, &inputs, &outputs)
            }
            None => SetRotation::fixed(),
        }
    }
}
