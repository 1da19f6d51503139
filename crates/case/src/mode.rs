//! What is done with a computation.

use crate::UnknownName;
use std::{fmt, str::FromStr};

/// Groups of operators, most of them a command of their own. What an operator is, it declares itself: a suite says only
/// where it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Suite {
    /// Matrix products, quantization, and what runs beside them in large models.
    Gemm,
    /// Normalizations, activations, losses.
    Ops,
    /// Patterns that are worth fusing.
    Fusion,
    /// Memory, linear algebra and launches, by which a machine is calibrated.
    Calibration,
    /// Copies between host and device, and exchange between devices.
    Links,
    /// The passes of a layer that is trained.
    Training,
    /// What other programs measure on other machines.
    Elsewhere,
    /// What other crates add.
    Custom,
    /// Programs of others: commands, shared libraries, CUDA C++ kernels.
    Foreign,
}

impl Suite {
    /// Every suite.
    pub const ALL: [Self; 9] = [
        Self::Gemm,
        Self::Ops,
        Self::Fusion,
        Self::Calibration,
        Self::Links,
        Self::Training,
        Self::Elsewhere,
        Self::Custom,
        Self::Foreign,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gemm => "gemm",
            Self::Ops => "ops",
            Self::Fusion => "fusion",
            Self::Calibration => "calibration",
            Self::Links => "links",
            Self::Training => "training",
            Self::Elsewhere => "elsewhere",
            Self::Custom => "custom",
            Self::Foreign => "foreign",
        }
    }
}

/// The first word of a case's id: what is done with a model, or the suite of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Mode {
    /// Forward passes of a model.
    #[default]
    Inference,
    /// The passes of a layer that is trained.
    Training,
    /// An operator.
    Operator(Suite),
}

impl Mode {
    fn all() -> impl Iterator<Item = Self> {
        [Self::Inference].into_iter().chain(Suite::ALL.map(Self::of))
    }

    /// That of an operator of a suite.
    pub fn of(suite: Suite) -> Self {
        if suite == Suite::Training { Self::Training } else { Self::Operator(suite) }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inference => "inference",
            Self::Training => "training",
            Self::Operator(suite) => suite.name(),
        }
    }

    /// Whether it is work of others, whose implementations have names of their own.
    pub fn is_foreign(self) -> bool {
        self == Self::Operator(Suite::Foreign)
    }

    /// Whether it is an operator for which there are no recipes.
    pub fn is_operator(self) -> bool {
        matches!(self, Self::Operator(_))
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Mode {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let found = Self::all().find(|mode| mode.name() == name);
        found.ok_or_else(|| UnknownName::new("mode", name, Self::all().map(Self::name)))
    }
}

crate::written_as_a_name!(
    Mode,
    "Mode",
    "what is done: inference, training, or the suite of an operator",
    Mode::all().map(|mode| mode.to_string()).collect()
);
