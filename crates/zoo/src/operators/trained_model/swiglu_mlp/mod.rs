//! `swiglu_mlp`: the gated MLP of large models, silu(x Wg) * (x Wu), then Wd.

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

/// m rows, k numbers wide outside and n inside. The weights are those of gate, up and down.
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

    // The hidden layer and what is behind it, there and back.
    fn products(&self) -> u32 {
        4
    }

    // Gate, its SiLU (two), up, their product, the output; back the product, that with up, the slope (four), the product, and
    // the sum of what comes back of both.
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
        kept: Kept<B>,
        parameters: &[Tensor<B, 2>],
        gradient: Tensor<B, 2>,
    ) -> Gradients<B> {
        burn::backward(layers, kept, parameters, gradient)
    }
}
