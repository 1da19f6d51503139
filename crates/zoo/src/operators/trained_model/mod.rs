//! The passes of models that are trained: the output, what comes back of the gradient of it to the input and to every
//! parameter, and what an optimizer makes of the parameters. A recipe says which products of linear layers are in float8.
//!
//! Both ways at once, and whole steps, are by burn's autodiff. That uses its graph up on the way back, so the way back alone
//! is written out, on what the way there kept when the case was opened.

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
use crate::operators::trained_linear::{Given as OfPass, Made as MadeByPass, TrainedLinear as Pass};
use crate::registry::table::Zoo;
use crate::{
    Activation, Along, Cost, Fill, Implementation, Moves, Operand, Operation, Signature, Slot, Spec, Suite, ZooError,
};
use architecture::{Architecture, Inside, Sides};
use calorimeter_recipes::Element;
use ln_linear::LnLinear;
use swiglu_mlp::SwigluMlp;
use transformer_block::TransformerBlock;

/// A pass of a model.
#[derive(Debug, Clone, Copy)]
pub struct TrainedModel<A> {
    model: A,
    pass: Pass,
    name: &'static str,
    about: &'static str,
    /// Multiply-adds that a reference may take.
    budget: u64,
}

/// What a pass computes; parameters are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Output,
    GradInput,
    Gradient(usize),
    Parameter(usize),
    /// One of two, of a parameter.
    Moment(usize, usize),
}

/// What a pass is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    Input,
    GradOutput,
    Parameter(usize),
    Gradient(usize),
    Moment(usize, usize),
}

/// Registers them with the ways to run them.
pub(super) fn register(zoo: &Zoo) {
    for activation in Activation::ALL {
        zoo.operators(passes(LnLinear(activation))).burn().cube_where(TrainedModel::has_cube).native();
    }
    zoo.operators(passes(SwigluMlp)).burn().cube_where(TrainedModel::has_cube).native();
    zoo.operators(passes(TransformerBlock)).burn().cube_where(TrainedModel::has_cube).native();
}

/// Every pass of a model.
fn passes<A: Architecture>(model: A) -> [TrainedModel<A>; 7] {
    // Registered for the life of the process.
    let kept = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    Pass::ALL.map(|pass| {
        let about = pass.about().replace("a linear layer", model.name());
        TrainedModel { model, pass, name: kept(pass.of_model(model.name())), about: kept(about), budget: BUDGET }
    })
}

/// What references may take: seconds on a small machine.
const BUDGET: u64 = 1 << 31;
/// Groups of loud rows that there are at least: the first and the last.
const FEWEST: u64 = 2;

impl<A: Architecture> TrainedModel<A> {
    /// The sides of each parameter: weights, then gains.
    fn parameters(&self, spec: &Spec) -> Vec<Operand> {
        let weight = |[n, k]: [u64; 2]| crate::operators::product::weight(n, k, k, spec);
        self.model.layers(spec).into_iter().map(weight).chain(self.model.gains(spec)).collect()
    }

    fn given(&self, spec: &Spec) -> Vec<Given> {
        let count = self.parameters(spec).len();
        let each = |of: &dyn Fn(usize) -> Given| (0..count).map(of).collect();
        let given = |given: &OfPass| match *given {
            OfPass::Input => vec![Given::Input],
            OfPass::GradOutput => vec![Given::GradOutput],
            OfPass::Weight => each(&Given::Parameter),
            OfPass::GradWeight => each(&Given::Gradient),
            OfPass::Moment(which) => each(&|of| Given::Moment(which, of)),
        };
        self.pass.given().iter().flat_map(given).collect()
    }

    fn results(&self, spec: &Spec) -> Vec<Made> {
        let count = self.parameters(spec).len();
        let each = |of: &dyn Fn(usize) -> Made| (0..count).map(of).collect();
        let made = |made: &MadeByPass| match *made {
            MadeByPass::Output => vec![Made::Output],
            MadeByPass::GradInput => vec![Made::GradInput],
            MadeByPass::GradWeight => each(&Made::Gradient),
            MadeByPass::Weight => each(&Made::Parameter),
            MadeByPass::Moment(which) => each(&|of| Made::Moment(which, of)),
        };
        self.pass.results().iter().flat_map(made).collect()
    }

    fn has_cube(&self, spec: &Spec) -> Result<(), String> {
        self.pass.has_cube(self.name, spec)
    }

    /// Multiply-adds of a forward pass.
    fn multiply_adds(&self, spec: &Spec) -> u64 {
        let Sides { rows, .. } = self.model.sides(spec);
        let weights: u64 = self.model.layers(spec).iter().map(|[n, k]| n * k).sum();
        rows * weights + self.model.unweighted(spec)
    }

    /// Groups of rows whose gradient is loud: as many as a reference can afford.
    fn loud_groups(&self, spec: &Spec) -> u64 {
        let Sides { rows, .. } = self.model.sides(spec);
        let groups = rows.div_ceil(GROUP as u64);
        let of_group = (self.multiply_adds(spec) / groups).saturating_mul(3);
        (self.budget / of_group.max(1)).clamp(FEWEST, groups.max(FEWEST)).min(groups)
    }

    fn loud_rows(&self, spec: &Spec) -> Vec<usize> {
        loud_rows::of(self.model.sides(spec).rows, self.loud_groups(spec))
    }

    /// How many there are, without listing them: a size may be beyond every machine. The last group may have fewer.
    fn loud_count(&self, spec: &Spec) -> u64 {
        self.loud_groups(spec).saturating_mul(GROUP as u64).min(self.model.sides(spec).rows)
    }

    /// Whether a reference knows all rows.
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
        let operand = |given: &Given| match *given {
            Given::Input => Operand::normal(rows, input, spec.element),
            Given::GradOutput => {
                // Under which gradients of weights are about as large as moments, behind slopes and layers that take away some.
                let loud = self.loud_count(spec);
                let edge = 2.0 * (3.0 / loud.max(output) as f32).sqrt();
                let fill = match self.is_whole(spec) {
                    true => Fill::Around(edge),
                    false => Fill::SomeRows { edge, groups: self.loud_groups(spec) },
                };
                Operand::normal(rows, output, spec.element).filled(fill)
            }
            Given::Parameter(of) => parameters[of],
            Given::Gradient(of) => Operand::normal(parameters[of].rows, parameters[of].cols, spec.element),
            Given::Moment(0, of) => Operand::normal(parameters[of].rows, parameters[of].cols, F32),
            // A mean of squares.
            Given::Moment(_, of) => {
                Operand::normal(parameters[of].rows, parameters[of].cols, F32).filled(Fill::Uniform(0.5, 1.5))
            }
        };
        self.given(spec).iter().map(operand).collect()
    }

    fn outputs(&self, spec: &Spec) -> Vec<Slot> {
        let (Sides { rows, input, output }, parameters) = (self.model.sides(spec), self.parameters(spec));
        let slot = |made: &Made| match *made {
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
    // Twice the multiply-adds of matrix products, as for models, and the optimizer's steps.
    fn flops(&self, spec: &Spec) -> u64 {
        let numbers: u64 = self.parameters(spec).iter().map(|parameter| parameter.rows * parameter.cols).sum();
        2 * self.pass.multiplied() * self.multiply_adds(spec) + self.pass.updated().unwrap_or(0) * numbers
    }

    // What is kept and its gradients; of the widest product in float8 both operands in codes and in f32, and the product;
    // gradients of parameters, and steps of the optimizer in f32.
    fn intermediate(&self, spec: &Spec) -> u64 {
        let Sides { rows, .. } = self.model.sides(spec);
        let bytes = u64::from(spec.element.bits()) / 8;
        let numbers: u64 = self.parameters(spec).iter().map(|parameter| parameter.rows * parameter.cols).sum();
        let update = if self.pass.updated().is_some() { numbers * bytes + 3 * 4 * numbers } else { 0 };
        if self.pass.is_optimizer() {
            return update;
        }
        let widest = self.model.layers(spec).into_iter().map(|[n, k]| rows * k + n * k + rows * n).max();
        let codes = if spec.training.is_some() { 9 * widest.unwrap_or(0) } else { 0 };
        2 * self.model.kept(spec) * bytes + codes + update
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

    // Numbers that may share a scale move together, and so do rows that know of each other.
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
    /// Moves of the input, the output and each parameter; gradients and moments go with what they are of.
    fn moved(&self, spec: &Spec, parts: u64, [input, output]: [Along; 2], parameters: Vec<Along>) -> Moves {
        let given = |given: &Given| match *given {
            Given::Input => input,
            Given::GradOutput => output,
            Given::Parameter(of) | Given::Gradient(of) | Given::Moment(_, of) => parameters[of],
        };
        let made = |made: &Made| match *made {
            Made::Output => output,
            Made::GradInput => input,
            Made::Parameter(of) | Made::Gradient(of) | Made::Moment(_, of) => parameters[of],
        };
        let inputs: Vec<Along> = self.given(spec).iter().map(given).collect();
        Moves::new(parts, &inputs, &self.results(spec).iter().map(made).collect::<Vec<_>>())
    }
}

/// The largest number that divides both.
fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common(b, a % b) }
}
