//! Training of `ln_linear_<activation>`: y = act(layer_norm(x) Wᵀ), without gain and biases.
//!
//! x is `[m, k]`, W is `[n, k]`, y is `[m, n]`.

mod burn;
#[cfg(feature = "native")]
mod native;
mod reference;
mod saved;

use super::architecture::{Architecture, InnerRotation, ModelGradients, ModelShape, ReferencePass, RoundingCounts};
use super::derivatives;
use super::layers::TrainedLayers;
use super::matrix_f64::MatrixF64;
use super::reference_layers::ReferenceLayers;
use crate::models::ln_linear;
use crate::operators::matmul::size;
use crate::{Activation, Definition, RotationAxis, Spec};
use ::burn::tensor::{Tensor, backend::Backend};
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;
use saved::LnLinearSaved;

/// Trained `ln_linear` with an activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TrainedLnLinear(
    /// Activation behind the linear layer.
    pub Activation,
);

impl Architecture for TrainedLnLinear {
    fn name(&self) -> &'static str {
        ln_linear::LnLinearModel(self.0).name()
    }

    fn shape(&self, spec: &Spec) -> ModelShape {
        let (m, k, n) = size(spec);
        ModelShape { rows: m, input: k, output: n }
    }

    fn layer_shapes(&self, spec: &Spec) -> Vec<[u64; 2]> {
        let (_, k, n) = size(spec);
        vec![[n, k]]
    }

    fn inner_rotation(&self, spec: &Spec) -> InnerRotation {
        let (_, _, n) = size(spec);
        InnerRotation { width: n, parameters: vec![RotationAxis::Rows], output: RotationAxis::Columns }
    }

    fn saved_elements(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        m * (k + n)
    }

    fn chained_matmuls(&self) -> u32 {
        2
    }

    // Forward: normalized rows, matmul and an activation of two steps. Backward: those again, the derivative of up to
    // four steps, a matmul and the normalization.
    fn roundings(&self) -> RoundingCounts {
        RoundingCounts { forward: 4, backward: 7 }
    }

    fn has_kinks(&self) -> bool {
        derivatives::has_kinks(self.0)
    }

    fn reference(
        &self,
        layers: &dyn ReferenceLayers,
        input: &MatrixF64,
        parameters: &[MatrixF64],
        gradient: Option<&MatrixF64>,
    ) -> ReferencePass {
        reference::forward_backward(self.0, layers, input, parameters, gradient)
    }

    type Saved<B: Backend> = LnLinearSaved<B>;

    fn forward<B: Float8Backend>(
        &self,
        layers: TrainedLayers,
        input: Tensor<B, 2>,
        parameters: &[Tensor<B, 2>],
    ) -> (Tensor<B, 2>, LnLinearSaved<B>) {
        burn::forward(self.0, layers, input, parameters)
    }

    fn backward<B: QuantBackend + Float8Backend>(
        &self,
        layers: TrainedLayers,
        saved: LnLinearSaved<B>,
        parameters: &[Tensor<B, 2>],
        gradient: Tensor<B, 2>,
    ) -> ModelGradients<B> {
        burn::backward(self.0, layers, saved, parameters, gradient)
    }
}
