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
#[cfg(feature = "cuda")]
mod native;
#[cfg(feature = "cuda")]
pub(super) mod native_layer;
mod operands;
pub(super) mod optimizers;
mod reference;

use crate::operators::number_types::{BF16, F32, allow};
use crate::operators::product::{AXES, size, weight};
use crate::parts::{BACKWARD, FORWARD, OPTIMIZER};
use crate::registry::table::Zoo;
use crate::{Along, Cost, Fill, Implementation, Moves, Operand, Operation, Signature, Slot, Spec, Suite, ZooError};
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
pub(super) enum Made {
    Output,
    GradInput,
    GradWeight,
    Weight,
    /// First (0) or second (1) moment: running mean of the gradients or of their squares.
    Moment(usize),
}

/// Input of a training pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
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

    pub(super) fn given(self) -> &'static [Given] {
        use Given::{GradOutput, GradWeight, Input, Moment, Weight};
        match self {
            Self::Forward => &[Input, Weight],
            Self::Backward | Self::ForwardBackward => &[Input, Weight, GradOutput],
            Self::Adamw => &[Weight, GradWeight, Moment(0), Moment(1)],
            Self::Sgd => &[Weight, GradWeight],
            Self::AdamwStep => &[Input, Weight, GradOutput, Moment(0), Moment(1)],
            Self::SgdStep => &[Input, Weight, GradOutput],
        }
    }

    pub(super) fn results(self) -> &'static [Made] {
        use Made::{GradInput, GradWeight, Moment, Output, Weight};
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
    pub(super) fn multiplied(self) -> u64 {
        match self {
            Self::Forward => 1,
            Self::Backward => 2,
            Self::ForwardBackward | Self::AdamwStep | Self::SgdStep => 3,
            Self::Adamw | Self::Sgd => 0,
        }
    }

    /// Optimizer operations per weight; `None` for passes without an optimizer.
    pub(super) fn updated(self) -> Option<u64> {
        match self {
            Self::Adamw | Self::AdamwStep => Some(optimizers::ADAMW_FLOPS),
            Self::Sgd | Self::SgdStep => Some(optimizers::SGD_FLOPS),
            Self::Forward | Self::Backward | Self::ForwardBackward => None,
        }
    }

    /// Name of this pass for a model.
    pub fn of_model(self, model: &str) -> String {
        format!("{model}{}", self.name().trim_start_matches("linear"))
    }

    /// Checks that a CubeCL kernel takes part in the pass: a float8 cast or an optimizer step.
    pub(super) fn has_cube(self, name: &str, spec: &Spec) -> Result<(), String> {
        if spec.training.is_some() || self.updated().is_some() {
            return Ok(());
        }
        Err(format!(
            "{name} has no `cube` kernel without a recipe: the CubeCL kernels cast operands to float8 and run \
             optimizer steps; use `eager` or `fused`"
        ))
    }

    /// True for optimizer steps without a matmul, on which the training recipe has no effect.
    pub fn is_optimizer(self) -> bool {
        self.multiplied() == 0
    }
}

/// Registers the training passes with their implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.operators(TrainedLinear::ALL).burn().cube_where(|pass, spec| pass.has_cube(pass.name(), spec)).native();
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

    fn about(&self) -> &'static str {
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
        allow(self.name(), spec, &[F32, BF16], &[])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, k, n) = size(spec);
        let operand = |input: &Given| match input {
            Given::Input => Operand::normal(m, k, spec.element),
            Given::Weight => weight(n, k, k, spec),
            Given::GradOutput => weight(m, n, m.max(n), spec),
            Given::GradWeight => Operand::normal(n, k, spec.element),
            Given::Moment(0) => Operand::normal(n, k, F32),
            // The second moment is a mean of squares, hence positive.
            Given::Moment(_) => Operand::normal(n, k, F32).filled(Fill::Uniform(0.5, 1.5)),
        };
        self.given().iter().map(operand).collect()
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (m, k, n) = size(spec);
        let slot = |output: &Made| match output {
            Made::Output => Slot::new(m, n, spec.element),
            Made::GradInput => Slot::new(m, k, spec.element),
            Made::GradWeight | Made::Weight => Slot::new(n, k, spec.element),
            Made::Moment(_) => Slot::new(n, k, F32),
        };
        self.results().iter().map(slot).collect()
    }
}

impl Cost for TrainedLinear {
    fn flops(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        2 * self.multiplied() * m * k * n + self.updated().unwrap_or(0) * n * k
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
        let update = if self.updated().is_some() { gradient + 3 * 4 * n * k } else { 0 };
        product + update
    }

    fn products(&self) -> u32 {
        u32::from(!self.is_optimizer())
    }

    // burn multiplies floats only; e4m3 values are exact in f32.
    fn factors(&self, spec: &Spec, implementation: Implementation) -> Element {
        match (spec.training, implementation) {
            (None, _) => spec.element,
            (Some(_), Implementation::Native) => Element::E4m3,
            (Some(_), _) => F32,
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
    fn moves(&self, spec: &Spec) -> Moves {
        use Along::{Columns, Nothing, Rows};
        const GROUP: u64 = 32;
        let (m, k, n) = size(spec);
        if self.is_optimizer() {
            return Moves::by_size(&self.inputs(spec), &self.outputs(spec));
        }
        let groups = |side: u64| Some(side / GROUP).filter(|groups| side.is_multiple_of(GROUP) && *groups > 1);
        let input_axes = |along: fn(&Given) -> Along| self.given().iter().map(along).collect::<Vec<_>>();
        let output_axes = |along: fn(&Made) -> Along| self.results().iter().map(along).collect::<Vec<_>>();
        if let Some(parts) = groups(m) {
            let inputs =
                input_axes(|input| if matches!(input, Given::Input | Given::GradOutput) { Rows } else { Nothing });
            let outputs =
                output_axes(|output| if matches!(output, Made::Output | Made::GradInput) { Rows } else { Nothing });
            return Moves::new(parts, &inputs, &outputs);
        }
        if let Some(parts) = groups(n) {
            let inputs = input_axes(|input| match input {
                Given::Input => Nothing,
                Given::GradOutput => Columns,
                _ => Rows,
            });
            let outputs = output_axes(|output| match output {
                Made::Output => Columns,
                Made::GradInput => Nothing,
                _ => Rows,
            });
            return Moves::new(parts, &inputs, &outputs);
        }
        match groups(k) {
            Some(parts) => {
                let inputs = input_axes(|input| if *input == Given::GradOutput { Nothing } else { Columns });
                let outputs = output_axes(|output| if *output == Made::Output { Nothing } else { Columns });
                Moves::new(parts, &inputs, &outputs)
            }
            None => Moves::none(),
        }
    }
}
