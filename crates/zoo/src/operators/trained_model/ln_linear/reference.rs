//! Forward and backward pass of `ln_linear_<activation>` in double precision.

use crate::operators::trained_model::architecture::ReferencePass;
use crate::operators::trained_model::derivatives;
use crate::operators::trained_model::matrix_f64::MatrixF64;
use crate::operators::trained_model::norms::Norm;
use crate::operators::trained_model::reference_layers::ReferenceLayers;
use crate::{Activate, Activation};

pub(super) fn forward_backward(
    activation: Activation,
    layers: &dyn ReferenceLayers,
    input: &MatrixF64,
    parameters: &[MatrixF64],
    gradient: Option<&MatrixF64>,
) -> ReferencePass {
    let normalized = Norm::Layer.forward_f64(input);
    let before = layers.output(0, &normalized.rows, &parameters[0]);
    let output = before.map(|x| activation.eval_f64(x));
    let gradients = gradient.map(|gradient| {
        let gradient = before.zip_map(gradient, |x, gradient| gradient * derivatives::derivative_f64(activation, x));
        let weight = layers.grad_weight(0, &gradient, &normalized.rows);
        let input = layers.grad_input(0, &gradient, &parameters[0]);
        (Norm::Layer.backward_f64(&normalized, &input), vec![weight])
    });
    ReferencePass { output, gradients }
}
