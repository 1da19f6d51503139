//! Definition of a trained model, from which its passes, references and tolerances are derived.

use super::exact_layers::ExactLayers;
use super::layers::Layers;
use super::rows::Rows;
use crate::{Along, Operand, Spec, ZooError};
use burn::tensor::{Tensor, backend::Backend};
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;
use std::fmt::Debug;

/// Shapes of the input and output of a model.
#[derive(Debug, Clone, Copy)]
pub struct Sides {
    /// Rows of input and output.
    pub rows: u64,
    /// Columns of the input.
    pub input: u64,
    /// Columns of the output.
    pub output: u64,
}

/// Number of roundings to the dtype along the longest chain, linear layers included.
#[derive(Debug, Clone, Copy)]
pub struct Roundings {
    /// From the input to the output.
    pub forward: u32,
    /// From the output back to the gradient with the most roundings.
    pub back: u32,
}

/// Buffer set rotation inside a model, for inputs with too few rows to rotate: groups of hidden columns, together with
/// the matching rows and columns of the parameters.
pub struct Inside {
    /// Number of hidden columns that rotate.
    pub width: u64,
    /// Rotation of each parameter.
    pub parameters: Vec<Along>,
    /// Rotation of the output and of its gradient.
    pub output: Along,
}

/// Results of a pass in double precision.
pub struct Exactly {
    pub output: Rows,
    /// Gradients of the input and of each parameter, if an output gradient is given.
    pub gradients: Option<(Rows, Vec<Rows>)>,
}

/// Gradients of the input and of each parameter.
pub struct Gradients<B: Backend> {
    pub input: Tensor<B, 2>,
    pub parameters: Vec<Tensor<B, 2>>,
}

/// Model with training passes. Its first parameters are the weights of its linear layers, `[n, k]`.
pub trait Architecture: Debug + Clone + Copy + Send + Sync + 'static {
    /// Name of the model.
    fn name(&self) -> &'static str;

    /// Checks that the model supports this shape.
    fn check(&self, _: &Spec) -> Result<(), ZooError> {
        Ok(())
    }

    /// Shapes of input and output.
    fn sides(&self, spec: &Spec) -> Sides;

    /// Sizes n and k of the weights of each linear layer.
    fn layers(&self, spec: &Spec) -> Vec<[u64; 2]>;

    /// Parameters after the weights: normalization gains, each as one row.
    fn gains(&self, _: &Spec) -> Vec<Operand> {
        Vec::new()
    }

    /// Rotation between buffer sets if rows cannot rotate.
    fn inside(&self, spec: &Spec) -> Inside;

    /// Multiply-adds of forward matmuls without weights (attention); the backward pass has twice as many.
    fn unweighted(&self, _: &Spec) -> u64 {
        0
    }

    /// Number of elements that the forward pass saves for the backward pass.
    fn kept(&self, spec: &Spec) -> u64;

    /// Number of consecutive matmuls in forward and backward together.
    fn products(&self) -> u32;

    /// Number of roundings to the dtype.
    fn roundings(&self) -> Roundings;

    /// True if a derivative is discontinuous, so that a rounding error at the kink changes it.
    fn is_kinked(&self) -> bool {
        false
    }

    /// Output and gradients of some rows in double precision.
    fn exact(&self, layers: &dyn ExactLayers, input: &Rows, parameters: &[Rows], gradient: Option<&Rows>) -> Exactly;

    /// Tensors that the forward pass saves for the backward pass.
    type Kept<B: Backend>: Clone + Send;

    /// Returns the output and the saved tensors.
    fn forward<B: Float8Backend>(
        &self,
        layers: Layers,
        input: Tensor<B, 2>,
        parameters: &[Tensor<B, 2>],
    ) -> (Tensor<B, 2>, Self::Kept<B>);

    /// Gradients, written out by hand without autodiff.
    fn backward<B: QuantBackend + Float8Backend>(
        &self,
        layers: Layers,
        saved: Self::Kept<B>,
        parameters: &[Tensor<B, 2>],
        gradient: Tensor<B, 2>,
    ) -> Gradients<B>;
}
