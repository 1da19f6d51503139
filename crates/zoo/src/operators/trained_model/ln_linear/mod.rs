//! Training of `ln_linear_<activation>`: y = act(layer_norm(x) Wᵀ), without gain and biases.
//!
//! x is `[m, k]`, W is `[n, k]`, y is `[m, n]`.

mod burn;
mod exact;
mod kept;
#[cfg(feature = "cuda")]
mod native;

use super::architecture::{Architecture, Exactly, Gradients, Inside, Roundings, Sides};
use super::exact_layers::ExactLayers;
use super::layers::Layers;
use super::rows::Rows;
use super::slopes;
use crate::models::ln_linear;
use crate::operators::product::size;
use crate::{Activation, Along, Definition, Spec};
use ::burn::tensor::{Tensor, backend::Backend};
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;
use kept::Kept;

/// Trained `ln_linear` with an activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LnLinear(
    /// Activation behind the linear layer.
    pub Activation,
);

impl Architecture for LnLinear {
    fn name(&self) -> &'static str {
        ln_linear::LnLinear(self.0).name()
    }

    fn sides(&self, spec: &Spec) -> Sides {
        let (m, k, n) = size(spec);
        Sides { rows: m, input: k, output: n }
    }

    fn layers(&self, spec: &Spec) -> Vec<[u64; 2]> {
        let (_, k, n) = size(spec);
        vec![[n, k]]
    }

    fn inside(&self, spec: &Spec) -> Inside {
        let (_, _, n) = size(spec);
        Inside { width: n, parameters: vec![Along::Rows], output: Along::Columns }
    }

    fn kept(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        m * (k + n)
    }

    fn products(&self) -> u32 {
        2
    }

    // Forward: normalized rows, matmul and an activation of two steps. Backward: those again, the derivative of up to
    // four steps, a matmul and the normalization.
    fn roundings(&self) -> Roundings {
        Roundings { forward: 4, back: 7 }
    }

    fn is_kinked(&self) -> bool {
        slopes::is_kinked(self.0)
    }

    fn exact(&self, layers: &dyn ExactLayers, input: &Rows, parameters: &[Rows], gradient: Option<&Rows>) -> Exactly {
        exact::of(self.0, layers, input, parameters, gradient)
    }

    type Kept<B: Backend> = Kept<B>;

    fn forward<B: Float8Backend>(
        &self,
        layers: Layers,
        input: Tensor<B, 2>,
        parameters: &[Tensor<B, 2>],
    ) -> (Tensor<B, 2>, Kept<B>) {
        burn::forward(self.0, layers, input, parameters)
    }

    fn backward<B: QuantBackend + Float8Backend>(
        &self,
        layers: Layers,
        saved: Kept<B>,
        parameters: &[Tensor<B, 2>],
        gradient: Tensor<B, 2>,
    ) -> Gradients<B> {
        burn::backward(self.0, layers, saved, parameters, gradient)
    }
}
