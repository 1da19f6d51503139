//! `int8wo-tensor`: 8-bit weights with one scale for the whole weight.

use calorimeter_recipes::format::{DEFAULT_EPSILON, Format, Grouping, QuantMethod};
use calorimeter_recipes::{Dtype, MatmulMode, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity};
use std::fmt;

/// Registration of the recipe.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["int8wo-tensor"],
    about: "8-bit weights, one scale for the whole weight",
    examples: &["int8wo-tensor"],
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
    fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        let method = QuantMethod::Symmetric { min: -127, max: 127, epsilon: DEFAULT_EPSILON };
        let weight = Format::symmetric(8, Grouping::Tensor, dtype, dtype).with_method(method);
        Ok(QuantConfig { matmul: MatmulMode::QuantizedValues(dtype), ..QuantConfig::weight_only(dtype, weight) })
    }
}
