//! Models: handle and definition.

use crate::gate::Projection;
use crate::{ExactLinear, Matrix, OutputSample, ZooError};
use burn::tensor::Tensor;
use calorimeter_shapes::Shape;
use std::cmp::Ordering;
use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// Forward pass; each call returns the output as rows by columns.
pub type Forward<B> = Box<dyn Fn() -> Tensor<B, 2> + Send>;

/// Sizes of the tensors of a model at one shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Rows and columns of the input.
    pub input: (u64, u64),
    /// Rows and columns of the output.
    pub output: (u64, u64),
    /// Output channels and input features of each linear layer, in the order of the forward pass.
    pub linears: Vec<(u64, u64)>,
    /// Elements of tensors between input and output.
    pub intermediate: u64,
}

/// Name, cost and reference of a model. The traits [`BurnModel`] and [`NativeModel`] add implementations.
///
/// [`BurnModel`]: crate::BurnModel
/// [`NativeModel`]: crate::NativeModel
pub trait Definition: Debug + Send + Sync + 'static {
    /// Returns the unique name.
    fn name(&self) -> &'static str;

    /// True if `name` is the name or an alias.
    fn matches_name(&self, name: &str) -> bool {
        name == self.name()
    }

    /// Description in one line.
    fn description(&self) -> &'static str;

    /// Checks that the model supports the shape; the error names a supported size.
    fn check(&self, _: Shape) -> Result<(), ZooError> {
        Ok(())
    }

    /// Returns the sizes of the tensors.
    fn layout(&self, shape: Shape) -> Layout;

    /// Twice the multiply-adds of all matmuls; elementwise work is not counted.
    fn flops(&self, shape: Shape) -> u64;

    /// Consecutive roundings to the dtype on the path from input to output, except those of linear layers.
    fn roundings(&self) -> u32;

    /// Rows that depend on each other, such as a sequence. Permuting groups of this size permutes the output likewise.
    fn rows_per_group(&self) -> usize {
        1
    }

    /// Returns the part of the output that is compared with the reference.
    fn sample(&self, shape: Shape) -> OutputSample;

    /// Computes the sampled part of the output in double precision.
    fn reference(&self, shape: Shape, input: &Matrix, linears: &[ExactLinear], sample: &OutputSample) -> Vec<f64>;

    /// Signed row and column sums of the whole output, if the operands determine them without a full matmul.
    fn projection(&self, _: &Matrix, _: &[ExactLinear]) -> Option<Projection> {
        None
    }
}

/// Handle of a registered model; dereferences to its [`Definition`].
#[derive(Clone, Copy)]
pub struct Model {
    name: &'static str,
    definition: &'static dyn Definition,
}

/// Entry of `calorimeter list` for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Name.
    pub name: String,
    /// Description in one line.
    pub description: &'static str,
}

/// Maximum number of elements of a tensor; with larger ones FLOPs and bytes could overflow.
const MAX_ELEMENTS: u128 = 1 << 48;

impl Model {
    /// Checks that the model supports the shape.
    pub fn check(&self, shape: Shape) -> Result<(), ZooError> {
        let [m, k, n] = [shape.m(), shape.k(), shape.n()].map(u128::from);
        if (m * k).max(m * n).max(k * n) > MAX_ELEMENTS {
            return Err(ZooError::too_large(self.name, &shape.into()));
        }
        self.definition.check(shape)
    }

    pub(crate) fn new(definition: &'static dyn Definition) -> Self {
        Self { name: definition.name(), definition }
    }
}

impl Deref for Model {
    type Target = dyn Definition;

    fn deref(&self) -> &Self::Target {
        self.definition
    }
}

crate::name_identity::compared_by_name!(Model);
