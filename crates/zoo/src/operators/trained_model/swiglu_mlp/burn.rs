//! Forward and backward pass of `swiglu_mlp` by burn's operations.

use super::kept::Kept;
use super::parameters::{DOWN, GATE, UP};
use crate::Activation;
use crate::operators::trained_model::architecture::Gradients;
use crate::operators::trained_model::layers::Layers;
use crate::operators::trained_model::slopes;
use burn::tensor::Tensor;
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;

pub fn forward<B: Float8Backend>(
    layers: Layers,
    input: Tensor<B, 2>,
    parameters: &[Tensor<B, 2>],
) -> (Tensor<B, 2>, Kept<B>) {
    let gate = layers.output(input.clone(), &parameters[GATE]);
    let up = layers.output(input.clone(), &parameters[UP]);
    let opened = slopes::apply(Activation::Silu, gate.clone());
    let hidden = opened.clone() * up.clone();
    let output = layers.output(hidden.clone(), &parameters[DOWN]);
    (output, Kept { input, gate, opened, up, hidden })
}

pub fn backward<B: QuantBackend + Float8Backend>(
    layers: Layers,
    saved: Kept<B>,
    parameters: &[Tensor<B, 2>],
    gradient: Tensor<B, 2>,
) -> Gradients<B> {
    let Kept { input, gate, opened, up, hidden } = saved;
    let grad_down = layers.grad_weight(gradient.clone(), hidden);
    let hidden = layers.grad_input(gradient, &parameters[DOWN]);
    let gate = slopes::back(Activation::Silu, gate, hidden.clone() * up);
    let up = hidden * opened;
    let grad_gate = layers.grad_weight(gate.clone(), input.clone());
    let grad_up = layers.grad_weight(up.clone(), input);
    let input = layers.grad_input(gate, &parameters[GATE]) + layers.grad_input(up, &parameters[UP]);
    Gradients { input, parameters: vec![grad_gate, grad_up, grad_down] }
}
