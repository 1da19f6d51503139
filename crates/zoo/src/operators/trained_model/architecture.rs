//! What a model that is trained says of itself; what its passes are and how they are judged follows from that.

use super::exact_layers::ExactLayers;
use super::layers::Layers;
use super::rows::Rows;
use crate::{Along, Operand, Spec, ZooError};
use burn::tensor::{Tensor, backend::Backend};
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;
use std::fmt::Debug;

/// The sides of a model's input and output.
#[derive(Debug, Clone, Copy)]
pub struct Sides {
    /// Rows of both.
    pub rows: u64,
    /// Columns of the input.
    pub input: u64,
    /// Columns of the output.
    pub output: u64,
}

/// Values rounded to the dtype in a row, linear layers included.
#[derive(Debug, Clone, Copy)]
pub struct Roundings {
    /// From the input to the output.
    pub forward: u32,
    /// From there back to the gradient that is rounded most often.
    pub back: u32,
}

/// What may change places inside a model where its rows may not: groups of columns of a layer, with the rows and columns of
/// other parameters that meet them.
pub struct Inside {
    /// Numbers that change places.
    pub width: u64,
    /// How each parameter moves.
    pub parameters: Vec<Along>,
    /// How the output moves, and the gradient of it.
    pub output: Along,
}

/// What is computed in double precision.
pub struct Exactly {
    pub output: Rows,
    /// Those of the input and of each parameter, where a gradient of the output is given.
    pub gradients: Option<(Rows, Vec<Rows>)>,
}

/// The gradients of the input and of each parameter.
pub struct Gradients<B: Backend> {
    pub input: Tensor<B, 2>,
    pub parameters: Vec<Tensor<B, 2>>,
}

/// A model whose passes are measured. Its first parameters are the weights of its linear layers, `[n, k]`.
pub trait Architecture: Debug + Clone + Copy + Send + Sync + 'static {
    /// The name of the model.
    fn name(&self) -> &'static str;

    /// Whether it exists at this size; the error says which would do.
    fn check(&self, _: &Spec) -> Result<(), ZooError> {
        Ok(())
    }

    /// The sides of its input and output.
    fn sides(&self, spec: &Spec) -> Sides;

    /// The sides n and k of the weight of each linear layer.
    fn layers(&self, spec: &Spec) -> Vec<[u64; 2]>;

    /// The parameters behind the weights: a gain for each column, as one row.
    fn gains(&self, _: &Spec) -> Vec<Operand> {
        Vec::new()
    }

    /// What changes places from one buffer set to the next where rows cannot.
    fn inside(&self, spec: &Spec) -> Inside;

    /// Multiply-adds of the forward pass in products that have no weight; on the way back there are twice as many.
    fn unweighted(&self, _: &Spec) -> u64 {
        0
    }

    /// Numbers that are kept for the way back.
    fn kept(&self, spec: &Spec) -> u64;

    /// Matrix products in a row, there and back.
    fn products(&self) -> u32;

    /// How often values are rounded.
    fn roundings(&self) -> Roundings;

    /// Whether its slope jumps somewhere, so that what is rounded across has another one.
    fn is_kinked(&self) -> bool {
        false
    }

    /// What it computes of some rows, by the mathematics alone.
    fn exact(&self, layers: &dyn ExactLayers, input: &Rows, parameters: &[Rows], gradient: Option<&Rows>) -> Exactly;

    /// What the way back needs of the way there.
    type Kept<B: Backend>: Clone + Send;

    /// The output, and what is kept.
    fn forward<B: Float8Backend>(
        &self,
        layers: Layers,
        input: Tensor<B, 2>,
        parameters: &[Tensor<B, 2>],
    ) -> (Tensor<B, 2>, Self::Kept<B>);

    /// The gradients, written out.
    fn backward<B: QuantBackend + Float8Backend>(
        &self,
        layers: Layers,
        kept: Self::Kept<B>,
        parameters: &[Tensor<B, 2>],
        gradient: Tensor<B, 2>,
    ) -> Gradients<B>;
}
