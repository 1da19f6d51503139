//! Named sets of operator shapes.

use crate::ZooError;
use calorimeter_case::UnknownName;
use calorimeter_shapes::{Axes, Axis, Grid};
use std::fmt;
use std::str::FromStr;

/// Named set of shapes. The shapes themselves depend on the axes of the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Preset {
    /// Small enough for a CPU; row shapes include a dimension that is not a power of two.
    Quick,
    /// Shapes that published comparisons of such kernels use.
    Guide,
    /// Many shapes, up to large ones.
    Full,
    /// Shapes of large language models.
    Llm,
}

impl Preset {
    /// All presets.
    pub fn all() -> [Self; 4] {
        [Self::Quick, Self::Guide, Self::Full, Self::Llm]
    }

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Guide => "guide",
            Self::Full => "full",
            Self::Llm => "llm",
        }
    }

    /// Short description.
    pub fn description(self) -> &'static str {
        match self {
            Self::Quick => "few small shapes, under a minute on a CPU",
            Self::Guide => "shapes of published kernel comparisons",
            Self::Full => "many shapes, up to large ones",
            Self::Llm => "shapes of large language models",
        }
    }

    /// Shapes for the given axes, for operators without their own.
    pub fn shapes_for_axes(self, axes: &[&'static str]) -> Vec<Axes> {
        match axes {
            ["batch", "sequence", "dimension"] => self.row_shapes(),
            ["batch", "heads", "sequence", "head_dim"] => self.attention_shapes(),
            ["m", "k", "n"] => self.gemm_shapes(),
            ["m", "n"] => self.matrix_shapes(),
            [axis] => {
                let elements: &[u64] = match self {
                    Self::Quick => &[1 << 20, 1 << 22],
                    Self::Guide | Self::Llm => &[1 << 24, 1 << 28],
                    Self::Full => &[1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30],
                };
                grid(&[(axis, elements)])
            }
            axes => grid(&axes.iter().map(|axis| (*axis, &[256_u64] as &[u64])).collect::<Vec<_>>()),
        }
    }

    /// Shapes of row operators: batch, sequence, dimension.
    fn row_shapes(self) -> Vec<Axes> {
        match self {
            Self::Quick => sequence_grid(&[1, 8], &[128], &[256, 1000]),
            Self::Guide => sequence_grid(&[16, 32, 64], &[256, 512, 1024], &[32, 64, 128, 256]),
            Self::Full => sequence_grid(&[16, 32, 64, 128], &[256, 512, 1024, 2048], &[8, 16, 32, 64, 128, 256, 512]),
            Self::Llm => {
                let dimensions = [4096, 8192];
                let one = sequence_grid(&[1], &[1, 2048, 8192, 32768], &dimensions);
                one.into_iter().chain(sequence_grid(&[8], &[2048], &dimensions)).collect()
            }
        }
    }

    fn attention_shapes(self) -> Vec<Axes> {
        let (sequences, widths): (&[u64], &[u64]) = match self {
            Self::Quick => (&[128], &[64, 128]),
            Self::Guide => (&[512, 2048], &[64, 128]),
            Self::Full => (&[256, 512, 1024, 2048, 4096, 8192], &[64, 128]),
            Self::Llm => (&[2048, 8192], &[128]),
        };
        let (batch, heads): (&[u64], &[u64]) = if self == Self::Quick { (&[1], &[4]) } else { (&[1, 4], &[16]) };
        grid(&[("batch", batch), ("heads", heads), ("sequence", sequences), ("head_dim", widths)])
    }

    /// GEMM shapes: squares, or few to many rows for `llm`.
    fn gemm_shapes(self) -> Vec<Axes> {
        let cubes = |sizes: &[u64]| sizes.iter().map(|&size| zip_axes(&["m", "k", "n"], &[size; 3])).collect();
        match self {
            Self::Quick => cubes(&[128, 256]),
            Self::Guide => cubes(&[1024, 4096, 8192]),
            Self::Full => cubes(&[256, 512, 1024, 2048, 4096, 8192, 16384]),
            Self::Llm => grid(&[("m", &[1, 16, 256, 4096]), ("k", &[4096]), ("n", &[4096, 14336])]),
        }
    }

    fn matrix_shapes(self) -> Vec<Axes> {
        let (m, n): (&[u64], &[u64]) = match self {
            Self::Quick => (&[256], &[1024]),
            Self::Guide => (&[4096, 16384], &[4096, 16384]),
            Self::Full => (&[256, 512, 1024, 2048, 4096, 8192, 16384], &[1024, 4096, 7168, 16384]),
            Self::Llm => (&[1, 16, 2048, 8192], &[4096, 8192]),
        };
        grid(&[("m", m), ("n", n)])
    }

    /// Returns the first shapes of a list ordered by size: two for `quick`, three for `guide`, otherwise all.
    pub fn first_shapes(self, axes: &[&'static str], sizes: &[&[u64]]) -> Vec<Axes> {
        let count = match self {
            Self::Quick => 2,
            Self::Guide => 3,
            Self::Full | Self::Llm => sizes.len(),
        };
        sizes.iter().take(count).map(|sizes| zip_axes(axes, sizes)).collect()
    }
}

// The first three shapes of each list are from published comparisons; the others are of newer models.
pub(super) const LINEAR_SHAPES: &[&[u64]] =
    &[&[128, 512, 512], &[512, 1024, 1024], &[1024, 2048, 2048], &[4096, 4096, 14336]];
pub(super) const CONVOLUTION_SHAPES: &[&[u64]] =
    &[&[1, 64, 64, 56, 3], &[4, 128, 128, 28, 3], &[8, 256, 256, 14, 3], &[32, 128, 128, 28, 3]];
pub(super) const ATTENTION_SHAPES: &[&[u64]] = &[&[1, 128, 64], &[4, 256, 64], &[8, 512, 64], &[8, 2048, 128]];

fn zip_axes(axes: &[&'static str], sizes: &[u64]) -> Axes {
    Axes::new(axes.iter().copied().zip(sizes.iter().copied())).expect("axis names are distinct")
}

/// Cartesian product of the sizes of each axis.
pub(super) fn grid(axes: &[(&'static str, &[u64])]) -> Vec<Axes> {
    let axes = axes.iter().map(|&(name, sizes)| Axis::new(name, sizes));
    Grid::product(axes).expect("the grid is small").iter().collect()
}

fn sequence_grid(batch: &[u64], sequence: &[u64], dimension: &[u64]) -> Vec<Axes> {
    grid(&[("batch", batch), ("sequence", sequence), ("dimension", dimension)])
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Preset {
    type Err = ZooError;

    fn from_str(name: &str) -> Result<Self, ZooError> {
        let known = || Self::all().iter().map(ToString::to_string).collect::<Vec<_>>();
        Self::all()
            .into_iter()
            .find(|preset| preset.name() == name)
            .ok_or_else(|| UnknownName::new("preset", name, known()).into())
    }
}

calorimeter_case::serde_by_name!(Preset, "a preset: quick, guide, full or llm");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Operator, Spec};
    use calorimeter_recipes::{Dtype, Element};
    use std::collections::BTreeSet;

    #[test]
    fn presets_hold_distinct_valid_shapes() {
        for (operator, preset) in Operator::all().into_iter().flat_map(|one| Preset::all().map(|preset| (one, preset)))
        {
            let sizes = preset.sizes(operator);
            assert_eq!(sizes.iter().collect::<BTreeSet<_>>().len(), sizes.len(), "{operator} {preset}");
            for axes in sizes {
                let spec = Spec { axes, element: Element::Float(Dtype::Bf16), output: None, training: None };
                operator.check_axes(&spec).unwrap();
            }
        }
    }

    #[test]
    fn row_preset_grids_are_complete() {
        let softmax: Operator = "softmax".parse().unwrap();
        let counts = Preset::all().map(|preset| preset.sizes(softmax).len());
        assert_eq!(counts, [4, 36, 112, 10]);
        assert_eq!(Preset::Guide.sizes(softmax)[35].to_string(), "batch64-sequence1024-dimension256");
        assert_eq!(Preset::Llm.sizes(softmax)[9].to_string(), "batch8-sequence2048-dimension8192");
    }

    #[test]
    fn unknown_preset_lists_known_ones() {
        let known = ["quick", "guide", "full", "llm"];
        assert_eq!("ful".parse::<Preset>(), Err(UnknownName::new("preset", "ful", known).into()));
    }
}
