//! The passes of a linear layer that is trained: y = x wᵀ, what comes back of the gradient g of y, and what an optimizer makes of
//! the weight. A recipe says which of the products are in float8.
//!
//! Weights are [n, k]. The optimizer's moments are in f32, whatever the type of the weight.

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

/// A pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TrainedLinear {
    /// The output.
    Forward,
    /// The gradients of the input and of the weight.
    Backward,
    /// Both.
    ForwardBackward,
    /// AdamW: the weight and its moments after a step.
    Adamw,
    /// Plain descent: the weight after a step.
    Sgd,
    /// Output, gradients and AdamW.
    AdamwStep,
    /// Output, gradients and plain descent.
    SgdStep,
}

/// What a pass computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    Output,
    GradInput,
    GradWeight,
    Weight,
    /// The mean of the gradients, and of their squares.
    Moment(usize),
}

/// What a pass is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    Input,
    Weight,
    GradOutput,
    GradWeight,
    Moment(usize),
}

impl TrainedLinear {
    /// Every one.
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

    /// Matrix products.
    pub(super) fn multiplied(self) -> u64 {
        match self {
            Self::Forward => 1,
            Self::Backward => 2,
            Self::ForwardBackward | Self::AdamwStep | Self::SgdStep => 3,
            Self::Adamw | Self::Sgd => 0,
        }
    }

    /// Operations on one weight, of those that change it.
    pub(super) fn updated(self) -> Option<u64> {
        match self {
            Self::Adamw | Self::AdamwStep => Some(optimizers::ADAMW_FLOPS),
            Self::Sgd | Self::SgdStep => Some(optimizers::SGD_FLOPS),
            Self::Forward | Self::Backward | Self::ForwardBackward => None,
        }
    }

    /// The name of the same pass of a model.
    pub fn of_model(self, model: &str) -> String {
        format!("{model}{}", self.name().trim_start_matches("linear"))
    }

    /// Whether kernels of ours have a part in it on every GPU: casts to float8, or an optimizer's step.
    pub(super) fn has_cube(self, name: &str, spec: &Spec) -> Result<(), String> {
        if spec.training.is_some() || self.updated().is_some() {
            return Ok(());
        }
        Err(format!(
            "{name} has no `cube` kernel without a recipe: CubeCL kernels of ours cast operands to float8 and take the steps of \
             optimizers; `eager` and `fused` run it"
        ))
    }

    /// Whether it is an optimizer alone, which multiplies nothing: it is the same under every recipe.
    pub fn is_optimizer(self) -> bool {
        self.multiplied() == 0
    }
}

/// Registers them with the ways to run them.
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
            Self::Forward => "the output of a linear layer that is trained",
            Self::Backward => "the gradients of a linear layer: of its input and of its weight",
            Self::ForwardBackward => "the output of a linear layer and its gradients",
            Self::Adamw => "AdamW on the weight of a linear layer, its moments in f32",
            Self::Sgd => "plain descent of the weight of a linear layer",
            Self::AdamwStep => "output, gradients and AdamW of a linear layer",
            Self::SgdStep => "output, gradients and plain descent of a linear layer",
        }
    }

    fn axes(&self) -> &'static [&'static str] {
        AXES
    }

    // Gradients in f16 need a loss that is scaled.
    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        allow(self.name(), spec, &[F32, BF16], &[])
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (m, k, n) = size(spec);
        let operand = |given: &Given| match given {
            Given::Input => Operand::normal(m, k, spec.element),
            Given::Weight => weight(n, k, k, spec),
            Given::GradOutput => weight(m, n, m.max(n), spec),
            Given::GradWeight => Operand::normal(n, k, spec.element),
            Given::Moment(0) => Operand::normal(n, k, F32),
            // A mean of squares.
            Given::Moment(_) => Operand::normal(n, k, F32).filled(Fill::Uniform(0.5, 1.5)),
        };
        self.given().iter().map(operand).collect()
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (m, k, n) = size(spec);
        let slot = |result: &Made| match result {
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

    // Of the widest product both operands in codes and in f32, and the product in f32; steps of the optimizer in f32.
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

    // Codes are exact in f32, and burn has products of floats alone.
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

    // A scale may be that of 32 numbers along any side: whole groups of them move.
    fn moves(&self, spec: &Spec) -> Moves {
        use Along::{Columns, Nothing, Rows};
        const GROUP: u64 = 32;
        let (m, k, n) = size(spec);
        if self.is_optimizer() {
            return Moves::by_size(&self.inputs(spec), &self.outputs(spec));
        }
        let groups = |side: u64| Some(side / GROUP).filter(|groups| side.is_multiple_of(GROUP) && *groups > 1);
        let given = |along: fn(&Given) -> Along| self.given().iter().map(along).collect::<Vec<_>>();
        let results = |along: fn(&Made) -> Along| self.results().iter().map(along).collect::<Vec<_>>();
        if let Some(parts) = groups(m) {
            let inputs = given(|given| if matches!(given, Given::Input | Given::GradOutput) { Rows } else { Nothing });
            let outputs = results(|of| if matches!(of, Made::Output | Made::GradInput) { Rows } else { Nothing });
            return Moves::new(parts, &inputs, &outputs);
        }
        if let Some(parts) = groups(n) {
            let inputs = given(|given| match given {
                Given::Input => Nothing,
                Given::GradOutput => Columns,
                _ => Rows,
            });
            let outputs = results(|of| match of {
                Made::Output => Columns,
                Made::GradInput => Nothing,
                _ => Rows,
            });
            return Moves::new(parts, &inputs, &outputs);
        }
        match groups(k) {
            Some(parts) => {
                let inputs = given(|given| if *given == Given::GradOutput { Nothing } else { Columns });
                let outputs = results(|of| if *of == Made::Output { Nothing } else { Columns });
                Moves::new(parts, &inputs, &outputs)
            }
            None => Moves::none(),
        }
    }
}
