//! Definition of a trained model, from which its passes, references and tolerances are derived.

use super::layers::TrainedLayers;
use super::matrix_f64::MatrixF64;
use super::reference_layers::ReferenceLayers;
use crate::{Operand, RotationAxis, Spec, ZooError};
use burn::tensor::{Tensor, backend::Backend};
use calorimeter_recipes::device::QuantBackend;
use calorimeter_recipes::training::Float8Backend;
use std::fmt::Debug;

/// Shapes of the input and output of a model.
#[derive(Debug, Clone, Copy)]
pub struct ModelShape {
    /// Rows of input and output.
    pub rows: u64,
    /// Columns of the input.
    pub input: u64,
    /// Columns of the output.
    pub output: u64,
}

/// Number of roundings to the dtype along the longest chain, linear layers included.
#[derive(Debug, Clone, Copy)]
pub struct RoundingCounts {
    /// From the input to the output.
    pub forward: u32,
    /// From the output back to the gradient with the most roundings.
    pub backward: u32,
}

/// Buffer set rotation inside a model, for inputs with too few rows to rotate: groups of hidden columns, together with
/// the matching rows and columns of the parameters.
pub struct InnerRotation {
    /// Number of hidden columns that rotate.
    pub width: u64,
    /// Rotation of each parameter.
    pub parameters: Vec<RotationAxis>,
    /// Rotation of the output and of its gradient.
    pub output: RotationAxis,
}

/// Results of a pass in double precision.
pub struct ReferencePass {
    pub output: MatrixF64,
    /// Gradients of the input and of each parameter, if an output gradient is given.
    pub gradients: Option<(MatrixF64, Vec<MatrixF64>)>,
}

/// Gradients of the input and of each parameter.
pub struct ModelGradients<B: Backend> {
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
    fn shape(&self, spec: &Spec) -> ModelShape;

    /// Sizes n and k of the weights of each linear layer.
    fn layer_shapes(&self, spec: &Spec) -> Vec<[u64; 2]>;

    /// Parameters after the weights: normalization gains, each as one row.
    fn gains(&self, _: &Spec) -> Vec<Operand> {
        Vec::new()
    }

    /// Rotation between buffer sets if rows cannot rotate.
    fn inner_rotation(&self, spec: &Spec) -> InnerRotation;

    /// Multiply-adds of forward matmuls without weights (attention); the backward pass has twice as many.
    fn unweighted_multiply_adds(&self, _: &Spec) -> u64 {
        0
    }

    /// Number of elements that the forward pass saves for the backward pass.
    fn saved_elements(&self, spec: &Spec) -> u64;

    /// Number of consecutive matmuls in forward and backward together.
    fn chained_matmuls(&self) -> u32;

    /// Number of roundings to the dtype.
    fn roundings(&self) -> RoundingCounts;

    /// True if a derivative is discontinuous, so that a rounding error at the kink changes it.
    fn has_kinks(&self) -> bool {
        false
    }

    /// Output and gradients of some rows in double precision.
    fn reference(
        &self,
        layers: &dyn ReferenceLayers,
        input: &MatrixF64,
        parameters: &[MatrixF64],
        gradient: Option<&MatrixF64>,
    ) -> ReferencePass;

    /// Tensors that the forward pass saves for the backward pass.
    type Saved<B: Backend>: Clone + Send;

    /// Returns the output and the saved tensors.
    fn forward<B: Float8Backend>(
        &self,
        layers: TrainedLayers,
        input: Tensor<B, 2>,
        parameters: &[Tensor<B, 2>],
    ) -> (Tensor<B, 2>, Self::Saved<B>);

    /// Gradients, written out by hand without autodiff.
    fn backward<B: QuantBackend + Float8Backend>(
        &self,
        layers: TrainedLayers,
        saved: Self::Saved<B>,
        parameters: &[Tensor<B, 2>],
        gradient: Tensor<B, 2>,
    ) -> ModelGradients<B>;
}
