//! Training of `swiglu_mlp`: y = (silu(x Wgᵀ) * (x Wuᵀ)) Wdᵀ.
//!
//! x and y are `[m, k]`, the hidden layer is `[m, n]`.

mod burn;
mod exact;
mod kept;
#[cfg(feature = "cuda")]
mod native;
mod parameters;

use super::architecture::{Architecture, Exactly, Gradients, Inside, Roundings, Sides};
use super::exact_layers::ExactLayers;
use super::layers::Layers;
use super::rows::Rows;
use crate::operators::product::size;
use crate::operators::swiglu_mlp;
use crate::{Along, Signature, Spec};
use ::burn::tensor::{Tensor, backend::Backend};
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;
use kept::Kept;

/// Trained gated MLP. Parameters: gate and up weights `[n, k]`, down weights `[k, n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwigluMlp;

impl Architecture for SwigluMlp {
    fn name(&self) -> &'static str {
        swiglu_mlp::SwigluMlp.name()
    }

    fn sides(&self, spec: &Spec) -> Sides {
        let (m, k, _) = size(spec);
        Sides { rows: m, input: k, output: k }
    }

    fn layers(&self, spec: &Spec) -> Vec<[u64; 2]> {
        let (_, k, n) = size(spec);
        vec![[n, k], [n, k], [k, n]]
    }

    fn inside(&self, spec: &Spec) -> Inside {
        let (_, _, n) = size(spec);
        Inside { width: n, parameters: vec![Along::Rows, Along::Rows, Along::Columns], output: Along::Nothing }
    }

    fn kept(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        m * (k + 4 * n)
    }

    // The hidden layer and the output, forward and backward.
    fn products(&self) -> u32 {
        4
    }

    // Forward: gate, SiLU (two), up, their product and the output. Backward: the matmul, its product with up, the
    // derivative (four), a matmul, and the sum of both input gradients.
    fn roundings(&self) -> Roundings {
        Roundings { forward: 6, back: 8 }
    }

    fn exact(&self, layers: &dyn ExactLayers, input: &Rows, parameters: &[Rows], gradient: Option<&Rows>) -> Exactly {
        exact::of(layers, input, parameters, gradient)
    }

    type Kept<B: Backend> = Kept<B>;

    fn forward<B: Float8Backend>(
        &self,
        layers: Layers,
        input: Tensor<B, 2>,
        parameters: &[Tensor<B, 2>],
    ) -> (Tensor<B, 2>, Kept<B>) {
        burn::forward(layers, input, parameters)
    }

    fn backward<B: QuantBackend + Float8Backend>(
        &self,
        layers: Layers,
        saved: Kept<B>,
        parameters: &[Tensor<B, 2>],
        gradient: Tensor<B, 2>,
    ) -> Gradients<B> {
        burn::backward(layers, saved, parameters, gradient)
    }
}
