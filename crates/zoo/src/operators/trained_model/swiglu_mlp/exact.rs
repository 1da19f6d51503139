//! Forward and backward pass of `swiglu_mlp` in double precision.

use super::parameters::{DOWN, GATE, UP};
use crate::operators::trained_model::architecture::Exactly;
use crate::operators::trained_model::exact_layers::ExactLayers;
use crate::operators::trained_model::rows::Rows;
use crate::operators::trained_model::slopes;
use crate::{Activate, Activation};

pub fn of(layers: &dyn ExactLayers, input: &Rows, parameters: &[Rows], gradient: Option<&Rows>) -> Exactly {
    let [gate, up] = [GATE, UP].map(|layer| layers.output(layer, input, &parameters[layer]));
    let opened = gate.map(|x| Activation::Silu.exact(x));
    let hidden = opened.with(&up, |opened, up| opened * up);
    let output = layers.output(DOWN, &hidden, &parameters[DOWN]);
    let gradients = gradient.map(|gradient| {
        let grad_down = layers.grad_weight(DOWN, gradient, &hidden);
        let hidden = layers.grad_input(DOWN, gradient, &parameters[DOWN]);
        let slope = gate.map(|x| slopes::exact(Activation::Silu, x));
        let gate = hidden.with(&up, |hidden, up| hidden * up).with(&slope, |gradient, slope| gradient * slope);
        let up = hidden.with(&opened, |hidden, opened| hidden * opened);
        let [grad_gate, grad_up] = [(GATE, &gate), (UP, &up)].map(|(layer, of)| layers.grad_weight(layer, of, input));
        let [by_gate, by_up] =
            [(GATE, &gate), (UP, &up)].map(|(layer, of)| layers.grad_input(layer, of, &parameters[layer]));
        (by_gate.plus(&by_up), vec![grad_gate, grad_up, grad_down])
    });
    Exactly { output, gradients }
}
