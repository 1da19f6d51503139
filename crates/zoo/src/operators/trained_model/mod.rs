//! Training passes of models: forward, backward to the input and all parameters, and the optimizer step of the
//! parameters. A training recipe selects the matmuls of linear layers that run in float8.
//!
//! burn's autodiff runs forward-backward passes and whole steps. It consumes its graph in the backward pass, so the
//! backward pass alone is written out by hand, on tensors that a forward pass saved when the case was opened.

mod architecture;
mod burn;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cube;
mod exact_layers;
mod given_gradient;
mod layers;
mod ln_linear;
#[cfg(test)]
mod mutants;
#[cfg(feature = "cuda")]
mod native;
mod norms;
mod reference;
mod rows;
mod slopes;
mod swiglu_mlp;
mod transformer_block;

use crate::loud_rows::{self, GROUP};
use crate::operators::number_types::{BF16, F32, allow};
use crate::operators::trained_linear::{Given as LayerInput, Made as LayerOutput, TrainedLinear as Pass};
use crate::registry::table::Zoo;
use crate::{
    Activation, Along, Cost, Fill, Implementation, Moves, Operand, Operation, Signature, Slot, Spec, Suite, ZooError,
};
use architecture::{Architecture, Inside, Sides};
use calorimeter_recipes::Element;
use ln_linear::LnLinear;
use swiglu_mlp::SwigluMlp;
use transformer_block::TransformerBlock;

/// Training pass of a model.
#[derive(Debug, Clone, Copy)]
pub struct TrainedModel<A> {
    model: A,
    pass: Pass,
    name: &'static str,
    about: &'static str,
    /// Maximum multiply-adds of a reference.
    budget: u64,
}

/// Output of a pass; parameters are given by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Output,
    GradInput,
    Gradient(usize),
    Parameter(usize),
    /// First (0) or second (1) moment, and the parameter.
    Moment(usize, usize),
}

/// Input of a pass; parameters are given by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    Input,
    GradOutput,
    Parameter(usize),
    Gradient(usize),
    Moment(usize, usize),
}

/// Registers the training passes of all models with their implementations.
pub(super) fn register(zoo: &Zoo) {
    for activation in Activation::ALL {
        zoo.operators(passes(LnLinear(activation))).burn().cube_where(TrainedModel::has_cube).native();
    }
    zoo.operators(passes(SwigluMlp)).burn().cube_where(TrainedModel::has_cube).native();
    zoo.operators(passes(TransformerBlock)).burn().cube_where(TrainedModel::has_cube).native();
}

/// All training passes of a model.
fn passes<A: Architecture>(model: A) -> [TrainedModel<A>; 7] {
    // Leaked: registered operators live as long as the process.
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    Pass::ALL.map(|pass| {
        let about = pass.about().replace("a linear layer", model.name());
        TrainedModel { model, pass, name: leak(pass.of_model(model.name())), about: leak(about), budget: BUDGET }
    })
}

/// Maximum multiply-adds of a reference: seconds on a small machine.
const BUDGET: u64 = 1 << 31;
/// Minimum number of active row groups: the first and the last.
const FEWEST: u64 = 2;

impl<A: Architecture> TrainedModel<A> {
    /// Parameters: weights, then gains.
    fn parameters(&self, spec: &Spec) -> Vec<Operand> {
        let weight = |[n, k]: [u64; 2]| crate::operators::product::weight(n, k, k, spec);
        self.model.layers(spec).into_iter().map(weight).chain(self.model.gains(spec)).collect()
    }

    fn given(&self, spec: &Spec) -> Vec<Given> {
        let count = self.parameters(spec).len();
        let for_all = |input: &dyn Fn(usize) -> Given| (0..count).map(input).collect();
        let expand = |input: &LayerInput| match *input {
            LayerInput::Input => vec![Given::Input],
            LayerInput::GradOutput => vec![Given::GradOutput],
            LayerInput::Weight => for_all(&Given::Parameter),
            LayerInput::GradWeight => for_all(&Given::Gradient),
            LayerInput::Moment(moment) => for_all(&|parameter| Given::Moment(moment, parameter)),
        };
        self.pass.given().iter().flat_map(expand).collect()
    }

    fn results(&self, spec: &Spec) -> Vec<Made> {
        let count = self.parameters(spec).len();
        let for_all = |output: &dyn Fn(usize) -> Made| (0..count).map(output).collect();
        let expand = |output: &LayerOutput| match *output {
            LayerOutput::Output => vec![Made::Output],
            LayerOutput::GradInput => vec![Made::GradInput],
            LayerOutput::GradWeight => for_all(&Made::Gradient),
            LayerOutput::Weight => for_all(&Made::Parameter),
            LayerOutput::Moment(moment) => for_all(&|parameter| Made::Moment(moment, parameter)),
        };
        self.pass.results().iter().flat_map(expand).collect()
    }

    fn has_cube(&self, spec: &Spec) -> Result<(), String> {
        self.pass.has_cube(self.name, spec)
    }

    /// Multiply-adds of the forward pass.
    fn multiply_adds(&self, spec: &Spec) -> u64 {
        let Sides { rows, .. } = self.model.sides(spec);
        let weights: u64 = self.model.layers(spec).iter().map(|[n, k]| n * k).sum();
        rows * weights + self.model.unweighted(spec)
    }

    /// Number of row groups with a significant output gradient: as many as a reference can afford.
    fn loud_groups(&self, spec: &Spec) -> u64 {
        let Sides { rows, .. } = self.model.sides(spec);
        let groups = rows.div_ceil(GROUP as u64);
        let of_group = (self.multiply_adds(spec) / groups).saturating_mul(3);
        (self.budget / of_group.max(1)).clamp(FEWEST, groups.max(FEWEST)).min(groups)
    }

    fn loud_rows(&self, spec: &Spec) -> Vec<usize> {
        loud_rows::of(self.model.sides(spec).rows, self.loud_groups(spec))
    }

    /// Number of active rows, computed without listing them because the shape may be too large for any machine. The
    /// last group may be smaller.
    fn loud_count(&self, spec: &Spec) -> u64 {
        self.loud_groups(spec).saturating_mul(GROUP as u64).min(self.model.sides(spec).rows)
    }

    /// True if the reference computes all rows.
    fn is_whole(&self, spec: &Spec) -> bool {
        self.loud_groups(spec) == self.model.sides(spec).rows.div_ceil(GROUP as u64)
    }
}

impl<A: Architecture> Signature for TrainedModel<A> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn axes(&self) -> &'static [&'static str] {
        crate::operators::product::AXES
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        allow(self.name(), spec, &[F32, BF16], &[])?;
        self.model.check(spec)
    }

    fn inputs(&self, spec: &Spec) -> Vec<Operand> {
        let (Sides { rows, input, output }, parameters) = (self.model.sides(spec), self.parameters(spec));
        let operand = |item: &Given| match *item {
            Given::Input => Operand::normal(rows, input, spec.element),
            Given::GradOutput => {
                // Magnitude that makes weight gradients about as large as the moments; the factor 2 makes up for
                // derivatives and layers that shrink gradients.
                let active_rows = self.loud_count(spec);
                let edge = 2.0 * (3.0 / active_rows.max(output) as f32).sqrt();
                let fill = match self.is_whole(spec) {
                    true => Fill::Around(edge),
                    false => Fill::SomeRows { edge, groups: self.loud_groups(spec) },
                };
                Operand::normal(rows, output, spec.element).filled(fill)
            }
            Given::Parameter(of) => parameters[of],
            Given::Gradient(of) => Operand::normal(parameters[of].rows, parameters[of].cols, spec.element),
            Given::Moment(0, of) => Operand::normal(parameters[of].rows, parameters[of].cols, F32),
            // The second moment is a mean of squares, hence positive.
            Given::Moment(_, of) => {
                Operand::normal(parameters[of].rows, parameters[of].cols, F32).filled(Fill::Uniform(0.5, 1.5))
            }
        };
        self.given(spec).iter().map(operand).collect()
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (Sides { rows, input, output }, parameters) = (self.model.sides(spec), self.parameters(spec));
        let slot = |item: &Made| match *item {
            Made::Output => Slot::new(rows, output, spec.element),
            Made::GradInput => Slot::new(rows, input, spec.element),
            Made::Gradient(of) | Made::Parameter(of) => {
                Slot::new(parameters[of].rows, parameters[of].cols, spec.element)
            }
            Made::Moment(_, of) => Slot::new(parameters[of].rows, parameters[of].cols, F32),
        };
        self.results(spec).iter().map(slot).collect()
    }
}

impl<A: Architecture> Cost for TrainedModel<A> {
    // Two operations per multiply-add of the matmuls, as for inference models, and the optimizer.
    fn flops(&self, spec: &Spec) -> u64 {
        let elements: u64 = self.parameters(spec).iter().map(|parameter| parameter.rows * parameter.cols).sum();
        2 * self.pass.multiplied() * self.multiply_adds(spec) + self.pass.updated().unwrap_or(0) * elements
    }

    // Saved tensors and their gradients. In float8: quantized and f32 copies of the operands and f32 results of the
    // widest matmul. Optimizer: gradients and f32 intermediates.
    fn intermediate(&self, spec: &Spec) -> u64 {
        let Sides { rows, .. } = self.model.sides(spec);
        let bytes = u64::from(spec.element.bits()) / 8;
        let elements: u64 = self.parameters(spec).iter().map(|parameter| parameter.rows * parameter.cols).sum();
        let update = if self.pass.updated().is_some() { elements * bytes + 3 * 4 * elements } else { 0 };
        if self.pass.is_optimizer() {
            return update;
        }
        let widest = self.model.layers(spec).into_iter().map(|[n, k]| rows * k + n * k + rows * n).max();
        let float8 = if spec.training.is_some() { 9 * widest.unwrap_or(0) } else { 0 };
        2 * self.model.kept(spec) * bytes + float8 + update
    }

    fn products(&self) -> u32 {
        if self.pass.is_optimizer() { 0 } else { self.model.products() }
    }

    fn factors(&self, spec: &Spec, implementation: Implementation) -> Element {
        self.pass.factors(spec, implementation)
    }
}

impl<A: Architecture> Operation for TrainedModel<A> {
    fn suite(&self) -> Suite {
        Suite::Training
    }

    fn tokens(&self, spec: &Spec) -> Option<u64> {
        (!self.pass.is_optimizer()).then(|| self.model.sides(spec).rows)
    }

    fn parts(&self) -> &'static [&'static str] {
        self.pass.parts()
    }

    // Elements that may share a scale rotate together, as do rows that depend on each other.
    fn moves(&self, spec: &Spec) -> Moves {
        use Along::{Nothing, Rows};
        let parameters = self.parameters(spec);
        let groups =
            |side: u64| (side.is_multiple_of(GROUP as u64) && side > GROUP as u64).then(|| side / GROUP as u64);
        let Inside { width, parameters: inside, output } = self.model.inside(spec);
        if self.pass.is_optimizer() {
            let rows = parameters.iter().map(|parameter| parameter.rows).filter(|rows| *rows > 1);
            let each = parameters.iter().map(|parameter| if parameter.rows > 1 { Rows } else { Nothing }).collect();
            return self.moved(spec, rows.reduce(common).unwrap_or(1), [Nothing, Nothing], each);
        }
        match (groups(self.model.sides(spec).rows), groups(width)) {
            (Some(parts), _) => self.moved(spec, parts, [Rows, Rows], vec![Nothing; parameters.len()]),
            (None, Some(parts)) => self.moved(spec, parts, [Nothing, output], inside),
            (None, None) => Moves::none(),
        }
    }
}

impl<A: Architecture> TrainedModel<A> {
    /// Rotation of all inputs and outputs, given the rotation of the input, the output and each parameter. Gradients
    /// and moments rotate like their tensor.
    fn moved(&self, spec: &Spec, parts: u64, [along_input, along_output]: [Along; 2], parameters: Vec<Along>) -> Moves {
        let input_rotation = |input: &Given| match *input {
            Given::Input => along_input,
            Given::GradOutput => along_output,
            Given::Parameter(of) | Given::Gradient(of) | Given::Moment(_, of) => parameters[of],
        };
        let output_rotation = |output: &Made| match *output {
            Made::Output => along_output,
            Made::GradInput => along_input,
            Made::Parameter(of) | Made::Gradient(of) | Made::Moment(_, of) => parameters[of],
        };
        let inputs: Vec<Along> = self.given(spec).iter().map(input_rotation).collect();
        Moves::new(parts, &inputs, &self.results(spec).iter().map(output_rotation).collect::<Vec<_>>())
    }
}

/// Greatest common divisor.
fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common(b, a % b) }
}
