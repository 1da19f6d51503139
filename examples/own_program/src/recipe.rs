//! `int8wo-tensor`: 8-bit weights with one scale for the whole weight.

use calorimeter_recipes::format::{EPSILON, Format, Grouping, Method};
use calorimeter_recipes::{Dtype, Family, Products, RecipeError, Scheme, Sparsity, Treatment};
use std::fmt;

/// Registration of the recipe.
pub static FAMILY: Family = Family {
    spellings: &["int8wo-tensor"],
    about: "8-bit weights, one scale for the whole weight",
    typical: &["int8wo-tensor"],
    parse: |name| (name == "int8wo-tensor").then_some(Box::new(Int8Tensor) as Box<dyn Scheme>),
};

/// Int8 weight-only quantization with a tensor scale.
#[derive(Debug)]
pub struct Int8Tensor;

impl fmt::Display for Int8Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("int8wo-tensor")
    }
}

impl Scheme for Int8Tensor {
    fn treatment(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<Treatment, RecipeError> {
        let method = Method::Symmetric { least: -127, most: 127, epsilon: EPSILON };
        let weight = Format::symmetric(8, Grouping::Tensor, dtype, dtype).with_method(method);
        Ok(Treatment { products: Products::Codes(dtype), ..Treatment::weight_only(dtype, weight) })
    }
}
