//! Training of `swiglu_mlp`: y = (silu(x Wgᵀ) * (x Wuᵀ)) Wdᵀ.
//!
//! x and y are `[m, k]`, the hidden layer is `[m, n]`.

mod burn;
#[cfg(feature = "native")]
mod native;
mod parameters;
mod reference;
mod saved;

use super::architecture::{Architecture, InnerRotation, ModelGradients, ModelShape, ReferencePass, RoundingCounts};
use super::layers::TrainedLayers;
use super::matrix_f64::MatrixF64;
use super::reference_layers::ReferenceLayers;
use crate::operators::matmul::size;
use crate::operators::swiglu_mlp;
use crate::{RotationAxis, Signature, Spec};
use ::burn::tensor::{Tensor, backend::Backend};
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;
use saved::SwigluMlpSaved;

/// Trained gated MLP. Parameters: gate and up weights `[n, k]`, down weights `[k, n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TrainedSwigluMlp;

impl Architecture for TrainedSwigluMlp {
    fn name(&self) -> &'static str {
        swiglu_mlp::SwigluMlp.name()
    }

    fn shape(&self, spec: &Spec) -> ModelShape {
        let (m, k, _) = size(spec);
        ModelShape { rows: m, input: k, output: k }
    }

    fn layer_shapes(&self, spec: &Spec) -> Vec<[u64; 2]> {
        let (_, k, n) = size(spec);
        vec![[n, k], [n, k], [k, n]]
    }

    fn inner_rotation(&self, spec: &Spec) -> InnerRotation {
        let (_, _, n) = size(spec);
        InnerRotation {
            width: n,
            parameters: vec![RotationAxis::Rows, RotationAxis::Rows, RotationAxis::Columns],
            output: RotationAxis::Fixed,
        }
    }

    fn saved_elements(&self, spec: &Spec) -> u64 {
        let (m, k, n) = size(spec);
        m * (k + 4 * n)
    }

    // The hidden layer and the output, forward and backward.
    fn chained_matmuls(&self) -> u32 {
        4
    }

    // Forward: gate, SiLU (two), up, their product and the output. Backward: the matmul, its product with up, the
    // derivative (four), a matmul, and the sum of both input gradients.
    fn roundings(&self) -> RoundingCounts {
        RoundingCounts { forward: 6, backward: 8 }
    }

    fn reference(
        &self,
        layers: &dyn ReferenceLayers,
        input: &MatrixF64,
        parameters: &[MatrixF64],
        gradient: Option<&MatrixF64>,
    ) -> ReferencePass {
        reference::forward_backward(layers, input, parameters, gradient)
    }

    type Saved<B: Backend> = SwigluMlpSaved<B>;

    fn forward<B: Float8Backend>(
        &self,
        layers: TrainedLayers,
        input: Tensor<B, 2>,
        parameters: &[Tensor<B, 2>],
    ) -> (Tensor<B, 2>, SwigluMlpSaved<B>) {
        burn::forward(layers, input, parameters)
    }

    fn backward<B: QuantBackend + Float8Backend>(
        &self,
        layers: TrainedLayers,
        saved: SwigluMlpSaved<B>,
        parameters: &[Tensor<B, 2>],
        gradient: Tensor<B, 2>,
    ) -> ModelGradients<B> {
        burn::backward(layers, saved, parameters, gradient)
    }
}
