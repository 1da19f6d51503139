//! What a recipe must be able to do.

use crate::{Dtype, Linear, RecipeError, Weight};
use burn::tensor::backend::Backend;
use std::fmt::{Debug, Display};

/// One recipe, or one family of recipes that differ in parameters. Adding one is a file with an implementation of this
/// trait and one line in the table of [`crate::Recipe`].
pub trait Scheme: Copy + Eq + Debug + Display + Send + Sync + Sized + 'static {
    /// Every name, or the pattern of its names.
    fn spellings() -> Vec<String>;

    /// What it does, in one line.
    const ABOUT: &'static str;

    /// Reads exactly one of its names.
    fn parse(name: &str) -> Option<Self>;

    /// Whether a weight of this size and type can be quantised; the error says what would make it run.
    fn check(&self, n: u64, k: u64, dtype: Dtype) -> Result<(), RecipeError>;

    /// Bytes of the quantised weight, scales included.
    fn weight_bytes(&self, n: u64, k: u64, dtype: Dtype) -> u64;

    /// Values rounded to the dtype in a row on the way through the layer, for the tolerance of the gate.
    fn roundings(&self) -> u32;

    /// The weight that the quantised operands stand for: what a correct kernel multiplies with.
    fn dequantised(&self, weight: &Weight) -> Weight;

    /// The layer on a device.
    fn linear<B: Backend>(&self, weight: &Weight, device: &B::Device) -> Result<Box<dyn Linear<B>>, RecipeError>;
}
