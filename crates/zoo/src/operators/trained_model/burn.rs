//! By burn's operations: both ways at once by its autodiff, the way back alone written out.

use super::architecture::{Architecture, Gradients};
use super::layers::Layers;
use super::{Given, Made, TrainedModel, given_gradient};
use crate::operators::trained_linear::optimizers::{self, Update};
use crate::{BurnPass, Pass, Spec, Value, parts};
use burn::tensor::Tensor;
use burn_autodiff::Autodiff;
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::{Float8Backend, Float8Training};
use std::cell::RefCell;

/// What a pass is given, on a device.
struct Held<B: burn::tensor::backend::Backend> {
    given: Vec<Given>,
    tensors: Vec<Tensor<B, 2>>,
    parameters: Vec<Tensor<B, 2>>,
}

impl<B: burn::tensor::backend::Backend> Held<B> {
    fn new(given: Vec<Given>, inputs: Vec<Value<B>>) -> Self {
        let tensors: Vec<Tensor<B, 2>> = inputs.into_iter().map(Value::float).collect();
        let is_parameter = |(given, _): &(&Given, &Tensor<B, 2>)| matches!(given, Given::Parameter(_));
        let parameters = given.iter().zip(&tensors).filter(is_parameter).map(|(_, tensor)| tensor.clone()).collect();
        Self { given, tensors, parameters }
    }

    fn find(&self, wanted: Given) -> Option<Tensor<B, 2>> {
        self.given.iter().position(|given| *given == wanted).map(|at| self.tensors[at].clone())
    }

    fn get(&self, wanted: Given) -> Tensor<B, 2> {
        self.find(wanted).expect("a pass is given what it needs")
    }

    fn begin(&self, part: &'static str) {
        parts::begin_on(part, &self.parameters[0]);
    }
}

impl<A: Architecture> BurnPass for TrainedModel<A> {
    fn pass<B: QuantBackend + Float8Backend>(&self, spec: &Spec, inputs: Vec<Value<B>>) -> Pass<B> {
        self.by_burn(spec, spec.training.map(|recipe| recipe.training()), optimizers::update, inputs)
    }
}

impl<A: Architecture> TrainedModel<A> {
    /// A pass whose linear layers multiply as a training says, and whose parameters follow their gradients by an update.
    pub(super) fn by_burn<B: QuantBackend + Float8Backend>(
        &self,
        spec: &Spec,
        training: Option<Float8Training>,
        update: Update<B>,
        inputs: Vec<Value<B>>,
    ) -> Pass<B> {
        let (model, results, layers) = (self.model, self.results(spec), Layers(training));
        let held = Held::new(self.given(spec), inputs);
        if self.pass.is_optimizer() {
            return Box::new(move || updated(&held, &results, update, |of| held.get(Given::Gradient(of))));
        }
        if held.find(Given::GradOutput).is_none() {
            // What the way back needs outlives the pass, as it does in training.
            let kept = RefCell::new(None);
            return Box::new(move || {
                kept.replace(None);
                held.begin(parts::FORWARD);
                let (output, keeps) = model.forward(layers, held.get(Given::Input), &held.parameters);
                kept.replace(Some(keeps));
                vec![Value::Float(output)]
            });
        }
        if !results.contains(&Made::Output) {
            let (_, kept) = model.forward(layers, held.get(Given::Input), &held.parameters);
            return Box::new(move || {
                held.begin(parts::BACKWARD);
                let gradient = held.get(Given::GradOutput);
                let Gradients { input, parameters } = model.backward(layers, kept.clone(), &held.parameters, gradient);
                std::iter::once(input).chain(parameters).map(Value::Float).collect()
            });
        }
        Box::new(move || {
            let (output, Gradients { input, parameters }) = both_ways(model, layers, &held);
            let first = [output, input].map(Value::Float);
            let rest = match results.contains(&Made::Gradient(0)) {
                true => parameters.into_iter().map(Value::Float).collect(),
                false => updated(&held, &results, update, |of| parameters[of].clone()),
            };
            first.into_iter().chain(rest).collect()
        })
    }
}

/// The output and all gradients, by autodiff.
fn both_ways<A: Architecture, B: QuantBackend + Float8Backend>(
    model: A,
    layers: Layers,
    held: &Held<B>,
) -> (Tensor<B, 2>, Gradients<B>) {
    let tracked = |tensor: Tensor<B, 2>| Tensor::<Autodiff<B>, 2>::from_inner(tensor).require_grad();
    let input = tracked(held.get(Given::Input));
    let parameters: Vec<_> = held.parameters.iter().cloned().map(tracked).collect();
    held.begin(parts::FORWARD);
    let (output, _) = model.forward(layers, input.clone(), &parameters);
    held.begin(parts::BACKWARD);
    let loss = given_gradient::loss(output.clone(), held.get(Given::GradOutput));
    let grads = loss.backward();
    let gradient = |of: &Tensor<Autodiff<B>, 2>| of.grad(&grads).expect("the output depends on every one of them");
    let gradients = Gradients { input: gradient(&input), parameters: parameters.iter().map(gradient).collect() };
    (output.inner(), gradients)
}

/// The results of an optimizer, in their order.
fn updated<B: QuantBackend>(
    held: &Held<B>,
    results: &[Made],
    update: Update<B>,
    gradient: impl Fn(usize) -> Tensor<B, 2>,
) -> Vec<Value<B>> {
    held.begin(parts::OPTIMIZER);
    let step = |of: usize| -> Vec<Tensor<B, 2>> {
        let moments = held.find(Given::Moment(0, of)).zip(held.find(Given::Moment(1, of)));
        update(held.get(Given::Parameter(of)), gradient(of), moments.map(Into::into))
    };
    let steps: Vec<Vec<Tensor<B, 2>>> = (0..held.parameters.len()).map(step).collect();
    let made = |made: &Made| match *made {
        Made::Parameter(of) => Some(steps[of][0].clone()),
        Made::Moment(which, of) => Some(steps[of][1 + which].clone()),
        Made::Output | Made::GradInput | Made::Gradient(_) => None,
    };
    results.iter().filter_map(made).map(Value::Float).collect()
}
