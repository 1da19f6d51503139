//! A model by its name, and what each must declare.

use crate::gate::Projection;
use crate::{ExactLinear, Matrix, Sample, ZooError};
use burn::tensor::Tensor;
use calorimeter_shapes::Shape;
use std::cmp::Ordering;
use std::fmt::{self, Debug};
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// A model ready to run: each call is one forward pass, rows of the output by columns.
pub type Forward<B> = Box<dyn Fn() -> Tensor<B, 2> + Send>;

/// The sizes of a model's tensors at one shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Rows and columns of the input.
    pub input: (u64, u64),
    /// Rows and columns of the output.
    pub output: (u64, u64),
    /// Output channels and input features of each linear layer, in the order of the forward pass.
    pub linears: Vec<(u64, u64)>,
    /// Elements of the tensors that live between input and output.
    pub intermediate: u64,
}

/// What a model is and costs, and what it computes. How it runs is said by [`BurnModel`] and [`NativeModel`].
///
/// [`BurnModel`]: crate::BurnModel
/// [`NativeModel`]: crate::NativeModel
pub trait Definition: Debug + Send + Sync + 'static {
    /// Its name, which no other model has.
    fn name(&self) -> &'static str;

    /// Whether it is also called this.
    fn answers_to(&self, name: &str) -> bool {
        name == self.name()
    }

    /// What it computes, in one line.
    fn about(&self) -> &'static str;

    /// Whether it exists at this shape; the error says which size would do.
    fn check(&self, _: Shape) -> Result<(), ZooError> {
        Ok(())
    }

    /// The sizes of its tensors.
    fn layout(&self, shape: Shape) -> Layout;

    /// Twice the multiply-adds of its matrix products; elementwise work is not counted.
    fn flops(&self, shape: Shape) -> u64;

    /// Values rounded to the dtype in a row on the way through the model, its linear layers not counted.
    fn roundings(&self) -> u32;

    /// Rows of input and output that belong together. Groups of so many may change places: an output's then do likewise.
    fn rows_together(&self) -> usize {
        1
    }

    /// Which part of the output is compared with the reference.
    fn sample(&self, shape: Shape) -> Sample;

    /// The sampled part of the output in double precision.
    fn reference(&self, shape: Shape, input: &Matrix, linears: &[ExactLinear], sample: &Sample) -> Vec<f64>;

    /// What the whole output adds up to, where that follows from the operands without computing it.
    fn projection(&self, _: &Matrix, _: &[ExactLinear]) -> Option<Projection> {
        None
    }
}

/// A registered model: as cheap to copy and compare as its name, and everything that [`Definition`] declares.
#[derive(Clone, Copy)]
pub struct Model {
    name: &'static str,
    definition: &'static dyn Definition,
}

/// What `list` shows of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Its name.
    pub name: String,
    /// What it computes, in one line.
    pub about: &'static str,
}

/// More numbers than a tensor has on any machine; of larger ones the counts would overflow.
const MOST: u128 = 1 << 48;

impl Model {
    /// Whether it exists at this size.
    pub fn check(&self, shape: Shape) -> Result<(), ZooError> {
        let [m, k, n] = [shape.m(), shape.k(), shape.n()].map(u128::from);
        if (m * k).max(m * n).max(k * n) > MOST {
            return Err(ZooError::more_than_any_machine(self.name, &shape.into()));
        }
        self.definition.check(shape)
    }

    pub(crate) fn of(definition: &'static dyn Definition) -> Self {
        Self { name: definition.name(), definition }
    }
}

impl Deref for Model {
    type Target = dyn Definition;

    fn deref(&self) -> &Self::Target {
        self.definition
    }
}

crate::by_name::compared_by_name!(Model);
