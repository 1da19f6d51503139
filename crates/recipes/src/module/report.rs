//! Report of a conversion.

use crate::Name;
use std::fmt;

/// Outcome for all linear layers of a module.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Name of the recipe or training recipe.
    pub recipe: Name,
    /// All linear layers in the order of the module's fields.
    pub layers: Vec<Layer>,
}

/// Outcome for a linear layer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Layer {
    /// Path in the module, such as `blocks.0.up`.
    pub path: String,
    /// Output channels.
    pub n: usize,
    /// Input features.
    pub k: usize,
    /// Bytes of the weight before conversion.
    pub bytes_before: u64,
    /// Bytes of the weight after conversion, including scales and zero points.
    pub bytes_after: u64,
    /// Outcome of the conversion.
    pub outcome: Outcome,
}

/// Outcome of a conversion for a linear layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The weight was quantized.
    Quantized,
    /// The layer was converted to float8 training.
    InFloat8,
    /// Excluded by the filter.
    Excluded,
    /// Excluded by the filter; already quantized with the named recipe.
    QuantizedBefore(Name),
    /// The recipe does not quantize weights.
    LeftByRecipe,
    /// The layer is a [`burn::nn::Linear`], not a [`QuantLinear`](super::QuantLinear).
    NotExchangeable,
}

impl Report {
    /// Layers that were not converted.
    pub fn left(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|layer| !matches!(layer.outcome, Outcome::Quantized | Outcome::InFloat8))
    }

    /// Bytes of all linear weights before conversion.
    pub fn bytes_before(&self) -> u64 {
        self.layers.iter().map(|layer| layer.bytes_before).sum()
    }

    /// Bytes of all linear weights after conversion.
    pub fn bytes_after(&self) -> u64 {
        self.layers.iter().map(|layer| layer.bytes_after).sum()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantized => f.write_str("was quantized"),
            Self::InFloat8 => f.write_str("was converted to float8 training"),
            Self::Excluded => f.write_str("is excluded by the filter"),
            Self::QuantizedBefore(recipe) => write!(f, "is already quantized with {recipe}"),
            Self::LeftByRecipe => f.write_str("is not quantized by the recipe"),
            Self::NotExchangeable => f.write_str("is a burn::nn::Linear, not a QuantLinear"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.layers.iter().map(|layer| layer.path.len()).max().unwrap_or(0);
        for Layer { path, n, k, bytes_before, bytes_after, outcome } in &self.layers {
            writeln!(f, "{path:width$} {outcome}: [{n}, {k}], {bytes_before} -> {bytes_after} bytes")?;
        }
        write!(f, "{}: {} -> {} bytes", self.recipe, self.bytes_before(), self.bytes_after())
    }
}
