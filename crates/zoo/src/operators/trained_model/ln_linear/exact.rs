//! Forward and backward pass of `ln_linear_<activation>` in double precision.

use crate::operators::trained_model::architecture::Exactly;
use crate::operators::trained_model::exact_layers::ExactLayers;
use crate::operators::trained_model::norms::Norm;
use crate::operators::trained_model::rows::Rows;
use crate::operators::trained_model::slopes;
use crate::{Activate, Activation};

pub fn of(
    activation: Activation,
    layers: &dyn ExactLayers,
    input: &Rows,
    parameters: &[Rows],
    gradient: Option<&Rows>,
) -> Exactly {
    let normalized = Norm::Layer.exact(input);
    let before = layers.output(0, &normalized.rows, &parameters[0]);
    let output = before.map(|x| activation.exact(x));
    let gradients = gradient.map(|gradient| {
        let gradient = before.with(gradient, |x, gradient| gradient * slopes::exact(activation, x));
        let weight = layers.grad_weight(0, &gradient, &normalized.rows);
        let input = layers.grad_input(0, &gradient, &parameters[0]);
        (Norm::Layer.exact_back(&normalized, &input), vec![weight])
    });
    Exactly { output, gradients }
}
