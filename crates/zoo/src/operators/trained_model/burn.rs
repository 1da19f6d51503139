//! Training passes of models by burn's operations. Forward-backward passes and whole steps use autodiff; the backward
//! pass alone is written out by hand.

use super::architecture::{Architecture, ModelGradients};
use super::layers::TrainedLayers;
use super::{ModelInput, ModelOutput, TrainedModel, output_gradient};
use crate::operators::trained_linear::optimizers::{self, OptimizerUpdate};
use crate::{BurnPass, Pass, Spec, TensorValue, parts};
use burn::tensor::Tensor;
use burn_autodiff::Autodiff;
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::{Float8Backend, Float8Training};
use std::cell::RefCell;

/// Input tensors of a pass on a device.
struct PassTensors<B: burn::tensor::backend::Backend> {
    pass_inputs: Vec<ModelInput>,
    tensors: Vec<Tensor<B, 2>>,
    parameters: Vec<Tensor<B, 2>>,
}

impl<B: burn::tensor::backend::Backend> PassTensors<B> {
    fn new(pass_inputs: Vec<ModelInput>, inputs: Vec<TensorValue<B>>) -> Self {
        let tensors: Vec<Tensor<B, 2>> = inputs.into_iter().map(TensorValue::float).collect();
        let is_parameter = |(input, _): &(&ModelInput, &Tensor<B, 2>)| matches!(input, ModelInput::Parameter(_));
        let parameters =
            pass_inputs.iter().zip(&tensors).filter(is_parameter).map(|(_, tensor)| tensor.clone()).collect();
        Self { pass_inputs, tensors, parameters }
    }

    fn find(&self, input: ModelInput) -> Option<Tensor<B, 2>> {
        self.pass_inputs.iter().position(|other| *other == input).map(|index| self.tensors[index].clone())
    }

    fn get(&self, input: ModelInput) -> Tensor<B, 2> {
        self.find(input).expect("the pass has this input")
    }

    fn begin(&self, part: &'static str) {
        parts::begin_on(part, &self.parameters[0]);
    }
}

impl<A: Architecture> BurnPass for TrainedModel<A> {
    fn pass<B: QuantBackend + Float8Backend>(&self, spec: &Spec, inputs: Vec<TensorValue<B>>) -> Pass<B> {
        self.burn_pass(spec, spec.training.map(|recipe| recipe.training()), optimizers::update_weights, inputs)
    }
}

impl<A: Architecture> TrainedModel<A> {
    /// Pass with linear layers that multiply as `training` says and an optimizer given by `update`.
    pub(super) fn burn_pass<B: QuantBackend + Float8Backend>(
        &self,
        spec: &Spec,
        training: Option<Float8Training>,
        update: OptimizerUpdate<B>,
        inputs: Vec<TensorValue<B>>,
    ) -> Pass<B> {
        let (model, results, layers) = (self.model, self.pass_outputs(spec), TrainedLayers(training));
        let tensors = PassTensors::new(self.pass_inputs(spec), inputs);
        if self.pass.is_optimizer() {
            return Box::new(move || {
                optimizer_outputs(&tensors, &results, update, |of| tensors.get(ModelInput::Gradient(of)))
            });
        }
        if tensors.find(ModelInput::GradOutput).is_none() {
            // The saved tensors outlive the pass, as in training.
            let saved_cell = RefCell::new(None);
            return Box::new(move || {
                saved_cell.replace(None);
                tensors.begin(parts::FORWARD);
                let (output, saved) = model.forward(layers, tensors.get(ModelInput::Input), &tensors.parameters);
                saved_cell.replace(Some(saved));
                vec![TensorValue::Float(output)]
            });
        }
        if !results.contains(&ModelOutput::Output) {
            let (_, saved) = model.forward(layers, tensors.get(ModelInput::Input), &tensors.parameters);
            return Box::new(move || {
                tensors.begin(parts::BACKWARD);
                let gradient = tensors.get(ModelInput::GradOutput);
                let ModelGradients { input, parameters } =
                    model.backward(layers, saved.clone(), &tensors.parameters, gradient);
                std::iter::once(input).chain(parameters).map(TensorValue::Float).collect()
            });
        }
        Box::new(move || {
            let (output, ModelGradients { input, parameters }) = forward_backward(model, layers, &tensors);
            let first = [output, input].map(TensorValue::Float);
            let rest = match results.contains(&ModelOutput::Gradient(0)) {
                true => parameters.into_iter().map(TensorValue::Float).collect(),
                false => optimizer_outputs(&tensors, &results, update, |of| parameters[of].clone()),
            };
            first.into_iter().chain(rest).collect()
        })
    }
}

/// Output and all gradients, by autodiff.
fn forward_backward<A: Architecture, B: QuantBackend + Float8Backend>(
    model: A,
    layers: TrainedLayers,
    tensors: &PassTensors<B>,
) -> (Tensor<B, 2>, ModelGradients<B>) {
    let tracked = |tensor: Tensor<B, 2>| Tensor::<Autodiff<B>, 2>::from_inner(tensor).require_grad();
    let input = tracked(tensors.get(ModelInput::Input));
    let parameters: Vec<_> = tensors.parameters.iter().cloned().map(tracked).collect();
    tensors.begin(parts::FORWARD);
    let (output, _) = model.forward(layers, input.clone(), &parameters);
    tensors.begin(parts::BACKWARD);
    let loss = output_gradient::loss(output.clone(), tensors.get(ModelInput::GradOutput));
    let grads = loss.backward();
    let gradient =
        |of: &Tensor<Autodiff<B>, 2>| of.grad(&grads).expect("the output depends on every input and parameter");
    let gradients = ModelGradients { input: gradient(&input), parameters: parameters.iter().map(gradient).collect() };
    (output.inner(), gradients)
}

/// Outputs of the optimizer, in declared order.
fn optimizer_outputs<B: QuantBackend>(
    tensors: &PassTensors<B>,
    results: &[ModelOutput],
    update: OptimizerUpdate<B>,
    gradient: impl Fn(usize) -> Tensor<B, 2>,
) -> Vec<TensorValue<B>> {
    tensors.begin(parts::OPTIMIZER);
    let step = |of: usize| -> Vec<Tensor<B, 2>> {
        let moments = tensors.find(ModelInput::Moment(0, of)).zip(tensors.find(ModelInput::Moment(1, of)));
        update(tensors.get(ModelInput::Parameter(of)), gradient(of), moments.map(Into::into))
    };
    let steps: Vec<Vec<Tensor<B, 2>>> = (0..tensors.parameters.len()).map(step).collect();
    let output = |output: &ModelOutput| match *output {
        ModelOutput::Parameter(index) => Some(steps[index][0].clone()),
        ModelOutput::Moment(moment, index) => Some(steps[index][1 + moment].clone()),
        ModelOutput::Output | ModelOutput::GradInput | ModelOutput::Gradient(_) => None,
    };
    results.iter().filter_map(output).map(TensorValue::Float).collect()
}
