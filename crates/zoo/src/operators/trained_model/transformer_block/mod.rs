//! Training of `transformer_block`: pre-norm attention and MLP with residuals, eight heads, no masks, no biases. The
//! gains of both RMS normalizations are trained, too.
//!
//! Input and output are `[m * 16, k]`. Weights: QKV `[3 k, k]`, projection `[k, k]`, up `[4 k, k]`, down `[k, 4 k]`.

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
use crate::models::transformer_block::{self, HEADS, TOKENS};
use crate::operators::product::size;
use crate::{Along, Definition, Fill, Operand, Spec, ZooError};
use ::burn::tensor::{Tensor, backend::Backend};
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;
use calorimeter_shapes::Shape;
use kept::Kept;
use parameters::{DOWN, UP};

/// Trained transformer block: m sequences of 16 tokens with k features; n is unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransformerBlock;

impl Architecture for TransformerBlock {
    fn name(&self) -> &'static str {
        transformer_block::TransformerBlock.name()
    }

    fn check(&self, spec: &Spec) -> Result<(), ZooError> {
        let shape =
            Shape::try_from(&spec.axes).map_err(|error| ZooError::Shape(format!("{}: {error}", self.name())))?;
        transformer_block::TransformerBlock.check(shape)
    }

    fn sides(&self, spec: &Spec) -> Sides {
        let (m, k, _) = size(spec);
        Sides { rows: m * TOKENS, input: k, output: k }
    }

    fn layers(&self, spec: &Spec) -> Vec<[u64; 2]> {
        let (_, k, _) = size(spec);
        vec![[3 * k, k], [k, k], [4 * k, k], [k, 4 * k]]
    }

    fn gains(&self, spec: &Spec) -> Vec<Operand> {
        let (_, k, _) = size(spec);
        vec![Operand::normal(1, k, spec.element).filled(Fill::Uniform(0.5, 1.5)); 2]
    }

    // Hidden columns of the MLP.
    fn inside(&self, spec: &Spec) -> Inside {
        let (_, k, _) = size(spec);
        let mut parameters = vec![Along::Nothing; 6];
        (parameters[UP], parameters[DOWN]) = (Along::Rows, Along::Columns);
        Inside { width: 4 * k, parameters, output: Along::Nothing }
    }

    // Scores and the product of the softmax weights with V.
    fn unweighted(&self, spec: &Spec) -> u64 {
        let (m, k, _) = size(spec);
        2 * m * TOKENS * TOKENS * k
    }

    fn kept(&self, spec: &Spec) -> u64 {
        let (m, k, _) = size(spec);
        m * TOKENS * (16 * k + HEADS * TOKENS)
    }

    fn products(&self) -> u32 {
        12
    }

    // Forward as in the inference model, plus the gains; backward through each step, the derivative of GELU (four) and
    // the gains.
    fn roundings(&self) -> Roundings {
        Roundings { forward: 18, back: 24 }
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
