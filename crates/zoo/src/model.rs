//! The table of models and what each must declare.

use crate::models::{linear::LinearModel, ln_linear::LnLinear, transformer_block::TransformerBlock};
use crate::{ExactLinear, Matrix, Sample, ZooError};
use burn::tensor::{Tensor, backend::Backend};
use calorimeter_case::UnknownName;
use calorimeter_recipes::Linear;
use calorimeter_shapes::Shape;
use std::fmt::{self, Debug, Display};
use std::str::FromStr;

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

/// What a model declares. Adding one is a file with an implementation of this trait and one line in [`Model`]'s table.
pub trait Definition: Copy + Eq + Debug + Display + Send + Sync + Sized + 'static {
    /// What it computes, in one line.
    const ABOUT: &'static str;

    /// Every name, the canonical one first for each variant.
    fn names() -> Vec<String>;

    /// Reads exactly one of its names.
    fn parse(name: &str) -> Option<Self>;

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

    /// The model with its layers and input on a device.
    fn forward<B: Backend>(&self, shape: Shape, linears: Vec<Box<dyn Linear<B>>>, input: Tensor<B, 2>) -> Forward<B>;

    /// Which part of the output is compared with the reference.
    fn sample(&self, shape: Shape) -> Sample;

    /// The sampled part of the output in double precision.
    fn reference(&self, shape: Shape, input: &Matrix, linears: &[ExactLinear], sample: &Sample) -> Vec<f64>;
}

/// What `list` shows of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// Its name.
    pub name: String,
    /// What it computes, in one line.
    pub about: &'static str,
}

macro_rules! models {
    ($($model:ident),+ $(,)?) => {
        /// A model of the zoo.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Model {
            $(#[doc = concat!("[`", stringify!($model), "`]")] $model($model),)+
        }

        macro_rules! each {
            ($self:expr, $definition:ident => $body:expr) => {
                match $self { $(Self::$model($definition) => $body,)+ }
            };
        }

        impl Model {
            /// Every model, for `list`.
            pub fn known() -> Vec<ModelInfo> {
                let mut known = Vec::new();
                $(known.extend($model::names().into_iter().map(|name| ModelInfo { name, about: $model::ABOUT }));)+
                known
            }
        }

        impl FromStr for Model {
            type Err = ZooError;

            fn from_str(name: &str) -> Result<Self, ZooError> {
                $(if let Some(model) = $model::parse(name) { return Ok(Self::$model(model)); })+
                Err(UnknownName::new("model", name, Self::known().into_iter().map(|info| info.name)).into())
            }
        }
    };
}

// One line for each model; names are asked in this order.
models! {
    LinearModel,
    LnLinear,
    TransformerBlock,
}

impl Model {
    /// See [`Definition::check`].
    pub fn check(&self, shape: Shape) -> Result<(), ZooError> {
        each!(self, model => model.check(shape))
    }

    /// See [`Definition::layout`].
    pub fn layout(&self, shape: Shape) -> Layout {
        each!(self, model => model.layout(shape))
    }

    /// See [`Definition::flops`].
    pub fn flops(&self, shape: Shape) -> u64 {
        each!(self, model => model.flops(shape))
    }

    /// See [`Definition::roundings`].
    pub fn roundings(&self) -> u32 {
        each!(self, model => model.roundings())
    }

    /// See [`Definition::forward`].
    pub fn forward<B: Backend>(
        &self,
        shape: Shape,
        linears: Vec<Box<dyn Linear<B>>>,
        input: Tensor<B, 2>,
    ) -> Forward<B> {
        each!(self, model => model.forward(shape, linears, input))
    }

    /// See [`Definition::sample`].
    pub fn sample(&self, shape: Shape) -> Sample {
        each!(self, model => model.sample(shape))
    }

    /// See [`Definition::reference`].
    pub fn reference(&self, shape: Shape, input: &Matrix, linears: &[ExactLinear], sample: &Sample) -> Vec<f64> {
        each!(self, model => model.reference(shape, input, linears, sample))
    }
}

impl Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        each!(self, model => Display::fmt(model, f))
    }
}
