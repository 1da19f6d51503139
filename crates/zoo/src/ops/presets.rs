//! Sizes of the op suite by name.

use crate::ZooError;
use calorimeter_shapes::{Axes, Axis, Grid};
use std::fmt;
use std::str::FromStr;

/// A list of sizes with the axes batch, sequence and dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Preset {
    /// Small enough for a processor, one dimension of them odd.
    Quick,
    /// The sizes that comparisons of such kernels commonly print.
    Guide,
    /// Many sizes, none left out for being large.
    Full,
    /// What large language models run.
    Llm,
}

impl Preset {
    /// Every preset.
    pub fn all() -> [Self; 4] {
        [Self::Quick, Self::Guide, Self::Full, Self::Llm]
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Guide => "guide",
            Self::Full => "full",
            Self::Llm => "llm",
        }
    }

    /// What it is for, in one line.
    pub fn about(self) -> &'static str {
        match self {
            Self::Quick => "4 shapes of at most a million elements: under a minute on a CPU",
            Self::Guide => "36 shapes: batch 16 to 64, sequence 256 to 1024, dimension 32 to 256",
            Self::Full => "112 shapes: batch 16 to 128, sequence 256 to 2048, dimension 8 to 512",
            Self::Llm => "10 shapes: dimension 4096 and 8192, one sequence of 1 to 32768 tokens, and 8 of 2048",
        }
    }

    /// Its sizes, in order.
    pub fn axes(self) -> Vec<Axes> {
        match self {
            Self::Quick => grid(&[1, 8], &[128], &[256, 1000]),
            Self::Guide => grid(&[16, 32, 64], &[256, 512, 1024], &[32, 64, 128, 256]),
            Self::Full => grid(&[16, 32, 64, 128], &[256, 512, 1024, 2048], &[8, 16, 32, 64, 128, 256, 512]),
            Self::Llm => {
                let dimensions = [4096, 8192];
                let one = grid(&[1], &[1, 2048, 8192, 32768], &dimensions);
                one.into_iter().chain(grid(&[8], &[2048], &dimensions)).collect()
            }
        }
    }
}

fn grid(batch: &[u64], sequence: &[u64], dimension: &[u64]) -> Vec<Axes> {
    let axes = [Axis::new("batch", batch), Axis::new("sequence", sequence), Axis::new("dimension", dimension)];
    Grid::product(axes).expect("three short lists").iter().collect()
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Preset {
    type Err = ZooError;

    fn from_str(name: &str) -> Result<Self, ZooError> {
        let known = || Self::all().iter().map(ToString::to_string).collect();
        Self::all()
            .into_iter()
            .find(|preset| preset.name() == name)
            .ok_or_else(|| ZooError::unknown("preset", name, known()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn presets_have_as_many_different_shapes_as_they_say() {
        for preset in Preset::all() {
            let axes = preset.axes();
            let said: usize = preset.about().split(' ').next().unwrap().parse().unwrap();
            assert_eq!((axes.len(), axes.iter().collect::<BTreeSet<_>>().len()), (said, said), "{preset}");
            assert_eq!(preset.name().parse::<Preset>(), Ok(preset));
        }
        assert_eq!(Preset::Guide.axes()[35].to_string(), "batch64-sequence1024-dimension256");
        assert_eq!(Preset::Llm.axes()[9].to_string(), "batch8-sequence2048-dimension8192");
    }

    #[test]
    fn a_preset_that_is_not_known_says_which_are() {
        let error = "ful".parse::<Preset>().unwrap_err().to_string();
        assert_eq!(error, "unknown preset \"ful\"; did you mean \"full\"?; known: quick, guide, full, llm");
    }
}
