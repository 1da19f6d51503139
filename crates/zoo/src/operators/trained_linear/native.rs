//! By CUDA's libraries and kernels of ours: in bf16 under recipes, whose operands are made codes of before they are multiplied.

use super::{Given, Made, TrainedLinear, optimisers};
use crate::native::{NativePass, Set};
use crate::operators::native_plans;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::SharedScale;
use calorimeter_kernels::native::{
    Adamw, Buffer, Float8Codes, InputLayout, Linear, LinearForm, LinearShape, Machine, NativeError, OptimiserRule,
    OptimiserStep, TrainedForm, TrainedOperands, TrainedProduct, TrainedProducts, WeightLayout,
};
use calorimeter_recipes::{Dtype, Element, TrainingRecipe};
use std::sync::Arc;

impl NativeOpen for TrainedLinear {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let pass = *self;
        let mut products = Products::new(pass, spec, &machine)?;
        let update = pass.update(spec, &machine)?;
        let kernels = products.kernels().into_iter().chain(update.as_ref().map(|update| update.algorithm().to_owned()));
        let multiplied = products.wanted().len();
        // The gradient of the weight, where a step makes it for itself.
        let kept = pass.results().contains(&Made::GradWeight) || pass.is_optimiser() || update.is_none();
        let LinearShape { k, n, .. } = native_plans::shape(spec);
        let between = if kept { Vec::new() } else { vec![n * k * spec.dtype().width()] };
        NativePass {
            kernels: kernels.collect(),
            between,
            enqueue: Box::new(move |Set { inputs, between, outputs }| {
                let at = |wanted: Given| pass.given().iter().position(|given| *given == wanted).map(|at| &inputs[at]);
                let (multiplied, updated) = outputs.split_at_mut(multiplied - between.len());
                if !pass.is_optimiser() {
                    let mut made: Vec<&mut Buffer> = multiplied.iter_mut().chain(between.iter_mut()).collect();
                    products.enqueue([at(Given::Input), at(Given::Weight), at(Given::GradOutput)], &mut made)?;
                }
                let Some(update) = &update else { return Ok(()) };
                let gradient = at(Given::GradWeight).or(between.first());
                let read = [at(Given::Weight), gradient, at(Given::Moment(0)), at(Given::Moment(1))];
                update.enqueue(&read.into_iter().flatten().collect::<Vec<_>>(), updated)
            }),
        }
        .open(self, spec, inputs, machine, sets)
    }
}

impl TrainedLinear {
    /// What changes the weight, if something does.
    fn update(self, spec: &Spec, machine: &Arc<Machine>) -> Result<Option<OptimiserStep>, NativeError> {
        let learning_rate = optimisers::LEARNING_RATE;
        let rule = match self {
            Self::Adamw | Self::AdamwStep => OptimiserRule::Adamw(Adamw {
                learning_rate,
                betas: optimisers::BETAS,
                corrections: optimisers::BETAS.map(optimisers::correction),
                epsilon: optimisers::EPSILON,
                decay: optimisers::DECAY,
            }),
            Self::Sgd | Self::SgdStep => OptimiserRule::Descent { learning_rate },
            Self::Forward | Self::Backward | Self::ForwardBackward => return Ok(None),
        };
        let LinearShape { k, n, .. } = native_plans::shape(spec);
        OptimiserStep::new(machine, spec.dtype(), rule, n * k).map(Some)
    }

    /// What it multiplies, in the order of its results; last the gradient that its optimiser takes.
    fn products(self) -> Vec<TrainedProduct> {
        let product = |made: &Made| match made {
            Made::Output => Some(TrainedProduct::Output),
            Made::GradInput => Some(TrainedProduct::GradInput),
            Made::GradWeight | Made::Weight if !self.is_optimiser() => Some(TrainedProduct::GradWeight),
            Made::GradWeight | Made::Weight | Made::Moment(_) => None,
        };
        self.results().iter().filter_map(product).collect()
    }
}

/// The products of a pass.
enum Products {
    /// In the model's own type.
    Plain(Vec<(TrainedProduct, Linear)>),
    /// Of codes.
    Coded(Vec<TrainedProduct>, Box<TrainedProducts>),
}

impl Products {
    fn new(pass: TrainedLinear, spec: &Spec, machine: &Arc<Machine>) -> Result<Self, ZooError> {
        let (shape, wanted) = (native_plans::shape(spec), pass.products());
        let Some(recipe) = spec.training.filter(|_| !pass.is_optimiser()) else {
            let plain = |product: TrainedProduct| Ok((product, plain(machine, spec.dtype(), product, shape)?));
            return Ok(Self::Plain(wanted.into_iter().map(plain).collect::<Result<_, NativeError>>()?));
        };
        let form = form(recipe, spec.element, shape).map_err(ZooError::Unsupported)?;
        let products = TrainedProducts::new(machine, form, shape, &wanted)?;
        Ok(Self::Coded(wanted, Box::new(products)))
    }

    fn wanted(&self) -> Vec<TrainedProduct> {
        match self {
            Self::Plain(products) => products.iter().map(|(product, _)| *product).collect(),
            Self::Coded(wanted, _) => wanted.clone(),
        }
    }

    fn kernels(&self) -> Vec<String> {
        match self {
            Self::Plain(products) => products.iter().map(|(_, product)| product.algorithm()).collect(),
            Self::Coded(_, products) => vec![products.algorithm()],
        }
    }

    /// Enqueues all, of the input, the weight and the gradient of the output.
    fn enqueue(
        &mut self,
        [input, weight, gradient]: [Option<&Buffer>; 3],
        made: &mut [&mut Buffer],
    ) -> Result<(), NativeError> {
        let needed = "a pass is given what it multiplies";
        let (input, weight) = (input.expect(needed), weight.expect(needed));
        match self {
            Self::Coded(_, products) => products.enqueue(TrainedOperands { input, weight, gradient }, made),
            Self::Plain(products) => products.iter().zip(made).try_for_each(|((product, plan), made)| {
                let gradient = || gradient.expect(needed);
                match product {
                    TrainedProduct::Output => plan.enqueue(input, weight, made),
                    TrainedProduct::GradInput => plan.enqueue(gradient(), weight, made),
                    TrainedProduct::GradWeight => plan.enqueue(gradient(), input, made),
                }
            }),
        }
    }
}

/// A product in the model's own type: each operand is read as it lies.
fn plain(
    machine: &Arc<Machine>,
    kind: Dtype,
    product: TrainedProduct,
    LinearShape { m, k, n }: LinearShape,
) -> Result<Linear, NativeError> {
    let (form, along_n) = (LinearForm::plain(kind), WeightLayout::AlongN);
    let (form, shape) = match product {
        TrainedProduct::Output => (form, LinearShape { m, k, n }),
        TrainedProduct::GradInput => (LinearForm { weight: along_n, ..form }, LinearShape { m, k: n, n: k }),
        TrainedProduct::GradWeight => {
            let input = InputLayout::AlongM;
            (LinearForm { input, weight: along_n, ..form }, LinearShape { m: n, k: m, n: k })
        }
    };
    Linear::of(machine, form, shape)
}

/// How a recipe stores operands; the error says which have kernels.
fn form(recipe: TrainingRecipe, element: Element, LinearShape { m, k, n }: LinearShape) -> Result<TrainedForm, String> {
    if element != Element::Float(Dtype::Bf16) || [m, k, n].iter().any(|side| !side.is_multiple_of(16)) {
        let what = "`native` multiplies codes of training in bf16, for sizes that are multiples of 16";
        return Err(format!("{what}, not {element} of m = {m}, k = {k}, n = {n}; `eager` runs it"));
    }
    match recipe {
        TrainingRecipe::TENSORWISE => {
            let gradient = Float8Codes::E5m2;
            Ok(TrainedForm { shared: SharedScale::Tensor, power_of_two: false, gradient })
        }
        TrainingRecipe::ROWWISE => {
            let gradient = Float8Codes::E4m3;
            Ok(TrainedForm { shared: SharedScale::Row, power_of_two: true, gradient })
        }
        _ => Err("`native` trains by the baseline, tensorwise and rowwise in this version; `eager` by all".into()),
    }
}
