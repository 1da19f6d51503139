//! Training of `transformer_block`: pre-norm attention and MLP with residuals, eight heads, no masks, no biases. The
//! gains of both RMS normalizations are trained, too.
//!
//! Input and output are `[m * 16, k]`. Weights: QKV `[3 k, k]`, projection `[k, k]`, up `[4 k, k]`, down `[k, 4 k]`.

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
use crate::models::transformer_block::{self, HEADS, TOKENS};
use crate::operators::matmul::size;
use crate::{Definition, Fill, Operand, RotationAxis, Spec, ZooError};
use ::burn::tensor::{Tensor, backend::Backend};
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;
use calorimeter_shapes::Shape;
use parameters::{DOWN, UP};
use saved::TransformerBlockSaved;

/// Trained transformer block: m sequences of 16 tokens with k features; n is unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TrainedTransformerBlock;

impl Architecture for TrainedTransformerBlock {
    fn name(&self) -> &'static str {
        transformer_block::TransformerBlockModel.name()
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        let shape =
            Shape::try_from(&spec.axes).map_err(|error| ZooError::Shape(format!("{}: {error}", self.name())))?;
        transformer_block::TransformerBlockModel.check(shape)
    }

    fn shape(&self, spec: &Spec) -> ModelShape {
        let (m, k, _) = size(spec);
        ModelShape { rows: m * TOKENS, input: k, output: k }
    }

    fn layer_shapes(&self, spec: &Spec) -> Vec<[u64; 2]> {
        let (_, k, _) = size(spec);
        vec![[3 * k, k], [k, k], [4 * k, k], [k, 4 * k]]
    }

    fn gains(&self, spec: &Spec) -> Vec<Operand> {
        let (_, k, _) = size(spec);
        vec![Operand::normal(1, k, spec.element).with_fill(Fill::Uniform(0.5, 1.5)); 2]
    }

    // Hidden columns of the MLP.
    fn inner_rotation(&self, spec: &Spec) -> InnerRotation {
        let (_, k, _) = size(spec);
        let mut parameters = vec![RotationAxis::Fixed; 6];
        (parameters[UP], parameters[DOWN]) = (RotationAxis::Rows, RotationAxis::Columns);
        InnerRotation { width: 4 * k, parameters, output: RotationAxis::Fixed }
    }

    // Scores and the product of the softmax weights with V.
    fn unweighted_multiply_adds(&self, spec: &Spec) -> u64 {
        let (m, k, _) = size(spec);
        2 * m * TOKENS * TOKENS * k
    }

    fn saved_elements(&self, spec: &Spec) -> u64 {
        let (m, k, _) = size(spec);
        m * TOKENS * (16 * k + HEADS * TOKENS)
    }

    fn chained_matmuls(&self) -> u32 {
        12
    }

    // Forward as in the inference model, plus the gains; backward through each step, the derivative of GELU (four) and
    // the gains.
    fn roundings(&self) -> RoundingCounts {
        RoundingCounts { forward: 18, backward: 24 }
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

    type Saved<B: Backend> = TransformerBlockSaved<B>;

    fn forward<B: Float8Backend>(
        &self,
        layers: TrainedLayers,
        input: Tensor<B, 2>,
        parameters: &[Tensor<B, 2>],
    ) -> (Tensor<B, 2>, TransformerBlockSaved<B>) {
        burn::forward(layers, input, parameters)
    }

    fn backward<B: QuantBackend + Float8Backend>(
        &self,
        layers: TrainedLayers,
        saved: TransformerBlockSaved<B>,
        parameters: &[Tensor<B, 2>],
        gradient: Tensor<B, 2>,
    ) -> ModelGradients<B> {
        burn::backward(layers, saved, parameters, gradient)
    }
}
