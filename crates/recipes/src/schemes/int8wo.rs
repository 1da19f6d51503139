//! `int8wo`: 8-bit weights, one scale per output channel, activations untouched.
//!
//! Symmetric over -128..=127, so the scale is amax / 127.5 and the positive maximum clamps to 127. Every step is rounded
//! to the weight's dtype, as torchao does. The layer multiplies with the integers cast to the activation's dtype and
//! applies the scale to the rounded product.

use crate::format::{Format, Grouping};
use crate::{Dtype, Family, Products, RecipeError, Scheme, Sparsity, Treatment};
use std::fmt;

/// Int8 weight-only quantization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Int8WeightOnly;

impl Int8WeightOnly {
    /// How the weight is stored.
    pub fn weight(dtype: Dtype) -> Format {
        Format::symmetric(8, Grouping::Row, dtype, dtype)
    }
}

impl fmt::Display for Int8WeightOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("int8wo")
    }
}

/// Its names.
pub static FAMILY: Family = Family {
    spellings: &["int8wo"],
    about: "8-bit weights, one scale per output channel; activations untouched",
    typical: &["int8wo"],
    parse: |name| Some(Box::new(Int8WeightOnly::parse(name)?)),
};

impl Int8WeightOnly {
    /// Reads exactly one of its names.
    pub fn parse(name: &str) -> Option<Self> {
        // The second is its name in torchao's accuracy tables.
        ["int8wo", "int8_rowwise_weight_only"].contains(&name).then_some(Self)
    }
}

impl Scheme for Int8WeightOnly {
    fn treatment(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<Treatment, RecipeError> {
        let products = Products::Codes(dtype);
        Ok(Treatment { products, ..Treatment::weight_only(dtype, Self::weight(dtype)) })
    }
}
