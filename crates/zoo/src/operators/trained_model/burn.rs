//! Training passes of models by burn's operations. Forward-backward passes and whole steps use autodiff; the backward
//! pass alone is written out by hand.

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

/// Input tensors of a pass on a device.
struct Held<B: burn::tensor::backend::Backend> {
    pass_inputs: Vec<Given>,
    tensors: Vec<Tensor<B, 2>>,
    parameters: Vec<Tensor<B, 2>>,
}

impl<B: burn::tensor::backend::Backend> Held<B> {
    fn new(pass_inputs: Vec<Given>, inputs: Vec<Value<B>>) -> Self {
        let tensors: Vec<Tensor<B, 2>> = inputs.into_iter().map(Value::float).collect();
        let is_parameter = |(input, _): &(&Given, &Tensor<B, 2>)| matches!(input, Given::Parameter(_));
        let parameters =
            pass_inputs.iter().zip(&tensors).filter(is_parameter).map(|(_, tensor)| tensor.clone()).collect();
        Self { pass_inputs, tensors, parameters }
    }

    fn find(&self, input: Given) -> Option<Tensor<B, 2>> {
        self.pass_inputs.iter().position(|other| *other == input).map(|index| self.tensors[index].clone())
    }

    fn get(&self, input: Given) -> Tensor<B, 2> {
        self.find(input).expect("the pass has this input")
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
    /// Pass with linear layers that multiply as `training` says and an optimizer given by `update`.
    pub(super) fn by_burn<B: QuantBackend + Float8Backend>(
        &self,
        spec: &Spec,
        training: Option<Float8Training>,
        update: Update<B>,
        inputs: Vec<Value<B>>,
    ) -> Pass<B> {
        let (model, results, layers) = (self.model, self.results(spec), Layers(training));
        let tensors = Held::new(self.given(spec), inputs);
        if self.pass.is_optimizer() {
            return Box::new(move || updated(&tensors, &results, update, |of| tensors.get(Given::Gradient(of))));
        }
        if tensors.find(Given::GradOutput).is_none() {
            // The saved tensors outlive the pass, as in training.
            let saved_cell = RefCell::new(None);
            return Box::new(move || {
                saved_cell.replace(None);
                tensors.begin(parts::FORWARD);
                let (output, saved) = model.forward(layers, tensors.get(Given::Input), &tensors.parameters);
                saved_cell.replace(Some(saved));
                vec![Value::Float(output)]
            });
        }
        if !results.contains(&Made::Output) {
            let (_, saved) = model.forward(layers, tensors.get(Given::Input), &tensors.parameters);
            return Box::new(move || {
                tensors.begin(parts::BACKWARD);
                let gradient = tensors.get(Given::GradOutput);
                let Gradients { input, parameters } =
                    model.backward(layers, saved.clone(), &tensors.parameters, gradient);
                std::iter::once(input).chain(parameters).map(Value::Float).collect()
            });
        }
        Box::new(move || {
            let (output, Gradients { input, parameters }) = both_ways(model, layers, &tensors);
            let first = [output, input].map(Value::Float);
            let rest = match results.contains(&Made::Gradient(0)) {
                true => parameters.into_iter().map(Value::Float).collect(),
                false => updated(&tensors, &results, update, |of| parameters[of].clone()),
            };
            first.into_iter().chain(rest).collect()
        })
    }
}

/// Output and all gradients, by autodiff.
fn both_ways<A: Architecture, B: QuantBackend + Float8Backend>(
    model: A,
    layers: Layers,
    tensors: &Held<B>,
) -> (Tensor<B, 2>, Gradients<B>) {
    let tracked = |tensor: Tensor<B, 2>| Tensor::<Autodiff<B>, 2>::from_inner(tensor).require_grad();
    let input = tracked(tensors.get(Given::Input));
    let parameters: Vec<_> = tensors.parameters.iter().cloned().map(tracked).collect();
    tensors.begin(parts::FORWARD);
    let (output, _) = model.forward(layers, input.clone(), &parameters);
    tensors.begin(parts::BACKWARD);
    let loss = given_gradient::loss(output.clone(), tensors.get(Given::GradOutput));
    let grads = loss.backward();
    let gradient =
        |of: &Tensor<Autodiff<B>, 2>| of.grad(&grads).expect("the output depends on every input and parameter");
    let gradients = Gradients { input: gradient(&input), parameters: parameters.iter().map(gradient).collect() };
    (output.inner(), gradients)
}

/// Outputs of the optimizer, in declared order.
fn updated<B: QuantBackend>(
    tensors: &Held<B>,
    results: &[Made],
    update: Update<B>,
    gradient: impl Fn(usize) -> Tensor<B, 2>,
) -> Vec<Value<B>> {
    tensors.begin(parts::OPTIMIZER);
    let step = |of: usize| -> Vec<Tensor<B, 2>> {
        let moments = tensors.find(Given::Moment(0, of)).zip(tensors.find(Given::Moment(1, of)));
        update(tensors.get(Given::Parameter(of)), gradient(of), moments.map(Into::into))
    };
    let steps: Vec<Vec<Tensor<B, 2>>> = (0..tensors.parameters.len()).map(step).collect();
    let output = |output: &Made| match *output {
        Made::Parameter(index) => Some(steps[index][0].clone()),
        Made::Moment(moment, index) => Some(steps[index][1 + moment].clone()),
        Made::Output | Made::GradInput | Made::Gradient(_) => None,
    };
    results.iter().filter_map(output).map(Value::Float).collect()
}
