//! Forward and backward pass of `ln_linear_<activation>` by burn's operations.

use super::kept::Kept;
use crate::Activation;
use crate::operators::trained_model::architecture::Gradients;
use crate::operators::trained_model::layers::Layers;
use crate::operators::trained_model::norms::Norm;
use crate::operators::trained_model::slopes;
use burn::tensor::Tensor;
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;

pub fn forward<B: Float8Backend>(
    activation: Activation,
    layers: Layers,
    input: Tensor<B, 2>,
    parameters: &[Tensor<B, 2>],
) -> (Tensor<B, 2>, Kept<B>) {
    let normalized = Norm::Layer.forward(input);
    let before = layers.output(normalized.rows.clone(), &parameters[0]);
    (slopes::apply(activation, before.clone()), Kept { normalized, before })
}

pub fn backward<B: QuantBackend + Float8Backend>(
    activation: Activation,
    layers: Layers,
    saved: Kept<B>,
    parameters: &[Tensor<B, 2>],
    gradient: Tensor<B, 2>,
) -> Gradients<B> {
    let Kept { normalized, before } = saved;
    let gradient = slopes::back(activation, before, gradient);
    let weight = layers.grad_weight(gradient.clone(), normalized.rows.clone());
    let input = Norm::Layer.back(normalized, layers.grad_input(gradient, &parameters[0]));
    Gradients { input, parameters: vec![weight] }
}
