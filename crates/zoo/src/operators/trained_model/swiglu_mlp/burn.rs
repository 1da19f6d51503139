//! Forward and backward pass of `swiglu_mlp` by burn's operations.

use super::parameters::{DOWN, GATE, UP};
use super::saved::SwigluMlpSaved;
use crate::Activation;
use crate::operators::trained_model::architecture::ModelGradients;
use crate::operators::trained_model::derivatives;
use crate::operators::trained_model::layers::TrainedLayers;
use burn::tensor::Tensor;
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;

pub(super) fn forward<B: Float8Backend>(
    layers: TrainedLayers,
    input: Tensor<B, 2>,
    parameters: &[Tensor<B, 2>],
) -> (Tensor<B, 2>, SwigluMlpSaved<B>) {
    let gate = layers.output(input.clone(), &parameters[GATE]);
    let up = layers.output(input.clone(), &parameters[UP]);
    let opened = derivatives::activate(Activation::Silu, gate.clone());
    let hidden = opened.clone() * up.clone();
    let output = layers.output(hidden.clone(), &parameters[DOWN]);
    (output, SwigluMlpSaved { input, gate, opened, up, hidden })
}

pub(super) fn backward<B: QuantBackend + Float8Backend>(
    layers: TrainedLayers,
    saved: SwigluMlpSaved<B>,
    parameters: &[Tensor<B, 2>],
    gradient: Tensor<B, 2>,
) -> ModelGradients<B> {
    let SwigluMlpSaved { input, gate, opened, up, hidden } = saved;
    let grad_down = layers.grad_weight(gradient.clone(), hidden);
    let hidden = layers.grad_input(gradient, &parameters[DOWN]);
    let gate = derivatives::backward(Activation::Silu, gate, hidden.clone() * up);
    let up = hidden * opened;
    let grad_gate = layers.grad_weight(gate.clone(), input.clone());
    let grad_up = layers.grad_weight(up.clone(), input);
    let input = layers.grad_input(gate, &parameters[GATE]) + layers.grad_input(up, &parameters[UP]);
    ModelGradients { input, parameters: vec![grad_gate, grad_up, grad_down] }
}
