//! Forward and backward pass of `swiglu_mlp` in double precision.

use super::parameters::{DOWN, GATE, UP};
use crate::operators::trained_model::architecture::ReferencePass;
use crate::operators::trained_model::derivatives;
use crate::operators::trained_model::matrix_f64::MatrixF64;
use crate::operators::trained_model::reference_layers::ReferenceLayers;
use crate::{Activate, Activation};

pub(super) fn forward_backward(
    layers: &dyn ReferenceLayers,
    input: &MatrixF64,
    parameters: &[MatrixF64],
    gradient: Option<&MatrixF64>,
) -> ReferencePass {
    let [gate, up] = [GATE, UP].map(|layer| layers.output(layer, input, &parameters[layer]));
    let opened = gate.map(|x| Activation::Silu.eval_f64(x));
    let hidden = opened.zip_map(&up, |opened, up| opened * up);
    let output = layers.output(DOWN, &hidden, &parameters[DOWN]);
    let gradients = gradient.map(|gradient| {
        let grad_down = layers.grad_weight(DOWN, gradient, &hidden);
        let hidden = layers.grad_input(DOWN, gradient, &parameters[DOWN]);
        let slope = gate.map(|x| derivatives::derivative_f64(Activation::Silu, x));
        let gate = hidden.zip_map(&up, |hidden, up| hidden * up).zip_map(&slope, |gradient, slope| gradient * slope);
        let up = hidden.zip_map(&opened, |hidden, opened| hidden * opened);
        let [grad_gate, grad_up] = [(GATE, &gate), (UP, &up)].map(|(layer, of)| layers.grad_weight(layer, of, input));
        let [by_gate, by_up] =
            [(GATE, &gate), (UP, &up)].map(|(layer, of)| layers.grad_input(layer, of, &parameters[layer]));
        (by_gate.plus(&by_up), vec![grad_gate, grad_up, grad_down])
    });
    ReferencePass { output, gradients }
}
