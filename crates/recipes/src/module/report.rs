//! What was done to the linear layers of a module.

use crate::Name;
use std::fmt;

/// What became of the layers.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The name of the recipe, or of the way to train.
    pub recipe: Name,
    /// All linear layers in the order of the module's fields.
    pub layers: Vec<Layer>,
}

/// What became of a linear layer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Layer {
    /// Where it is, such as `blocks.0.up`.
    pub path: String,
    /// Its outputs.
    pub n: usize,
    /// Its inputs.
    pub k: usize,
    /// Bytes of its weight before.
    pub bytes_before: u64,
    /// Bytes of its weight now, scales and zeros included.
    pub bytes_after: u64,
    /// What was done.
    pub outcome: Outcome,
}

/// What was done with a linear layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Its weight was quantized.
    Quantized,
    /// Its products are in float8.
    InFloat8,
    /// The filter left it as it is.
    Excluded,
    /// The filter left it as it is: quantized before, with the recipe of this name.
    QuantizedBefore(Name),
    /// The recipe does not quantize weights.
    LeftByRecipe,
    /// It is an [`burn::nn::Linear`] and no [`QuantLinear`](super::QuantLinear).
    NotExchangeable,
}

impl Report {
    /// The layers that were not exchanged.
    pub fn left(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().filter(|layer| !matches!(layer.outcome, Outcome::Quantized | Outcome::InFloat8))
    }

    /// Bytes of all weights of linear layers before.
    pub fn bytes_before(&self) -> u64 {
        self.layers.iter().map(|layer| layer.bytes_before).sum()
    }

    /// Bytes of all weights of linear layers now.
    pub fn bytes_after(&self) -> u64 {
        self.layers.iter().map(|layer| layer.bytes_after).sum()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantized => f.write_str("was quantized"),
            Self::InFloat8 => f.write_str("multiplies in float8"),
            Self::Excluded => f.write_str("is excluded by the filter"),
            Self::QuantizedBefore(recipe) => write!(f, "was quantized with {recipe} before"),
            Self::LeftByRecipe => f.write_str("is left as it is by the recipe"),
            Self::NotExchangeable => f.write_str("is a burn::nn::Linear and no QuantLinear"),
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
