//! Forward and backward pass of `ln_linear_<activation>` by burn's operations.

use super::saved::LnLinearSaved;
use crate::Activation;
use crate::operators::trained_model::architecture::ModelGradients;
use crate::operators::trained_model::derivatives;
use crate::operators::trained_model::layers::TrainedLayers;
use crate::operators::trained_model::norms::Norm;
use burn::tensor::Tensor;
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;

pub(super) fn forward<B: Float8Backend>(
    activation: Activation,
    layers: TrainedLayers,
    input: Tensor<B, 2>,
    parameters: &[Tensor<B, 2>],
) -> (Tensor<B, 2>, LnLinearSaved<B>) {
    let normalized = Norm::Layer.forward(input);
    let before = layers.output(normalized.rows.clone(), &parameters[0]);
    (derivatives::activate(activation, before.clone()), LnLinearSaved { normalized, before })
}

pub(super) fn backward<B: QuantBackend + Float8Backend>(
    activation: Activation,
    layers: TrainedLayers,
    saved: LnLinearSaved<B>,
    parameters: &[Tensor<B, 2>],
    gradient: Tensor<B, 2>,
) -> ModelGradients<B> {
    let LnLinearSaved { normalized, before } = saved;
    let gradient = derivatives::backward(activation, before, gradient);
    let weight = layers.grad_weight(gradient.clone(), normalized.rows.clone());
    let input = Norm::Layer.backward(normalized, layers.grad_input(gradient, &parameters[0]));
    ModelGradients { input, parameters: vec![weight] }
}
