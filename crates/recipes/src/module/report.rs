//! Report of a conversion.

use crate::Name;
use std::fmt;

/// Outcome for all linear layers of a module.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModuleReport {
    /// Name of the recipe or training recipe.
    pub recipe: Name,
    /// All linear layers in the order of the module's fields.
    pub layers: Vec<LayerReport>,
}

/// Outcome for a linear layer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerReport {
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
    pub outcome: LayerOutcome,
}

/// Outcome of a conversion for a linear layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayerOutcome {
    /// The weight was quantized.
    Quantized,
    /// The layer was converted to float8 training.
    ConvertedToFloat8,
    /// Excluded by the filter.
    Excluded,
    /// Excluded by the filter; already quantized with the named recipe.
    AlreadyQuantized(Name),
    /// The recipe does not quantize weights.
    UnquantizedByRecipe,
    /// The layer is a [`burn::nn::Linear`], not a [`QuantLinear`](super::QuantLinear).
    NotReplaceable,
}

impl ModuleReport {
    /// Layers that were not converted.
    pub fn unconverted(&self) -> impl Iterator<Item = &LayerReport> {
        self.layers
            .iter()
            .filter(|layer| !matches!(layer.outcome, LayerOutcome::Quantized | LayerOutcome::ConvertedToFloat8))
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

impl fmt::Display for LayerOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantized => f.write_str("was quantized"),
            Self::ConvertedToFloat8 => f.write_str("was converted to float8 training"),
            Self::Excluded => f.write_str("is excluded by the filter"),
            Self::AlreadyQuantized(recipe) => write!(f, "is already quantized with {recipe}"),
            Self::UnquantizedByRecipe => f.write_str("is not quantized by the recipe"),
            Self::NotReplaceable => f.write_str("is a burn::nn::Linear, not a QuantLinear"),
        }
    }
}

impl fmt::Display for ModuleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.layers.iter().map(|layer| layer.path.len()).max().unwrap_or(0);
        for LayerReport { path, n, k, bytes_before, bytes_after, outcome } in &self.layers {
            writeln!(f, "{path:width$} {outcome}: [{n}, {k}], {bytes_before} -> {bytes_after} bytes")?;
        }
        write!(f, "{}: {} -> {} bytes", self.recipe, self.bytes_before(), self.bytes_after())
    }
}
