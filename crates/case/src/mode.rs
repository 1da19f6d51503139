//! Modes and operator suites.

use crate::UnknownName;
use std::{fmt, str::FromStr};

/// Groups of operators; most have their own command. An operator describes itself: the suite only determines where it
/// is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Suite {
    /// GEMM, quantization, and related operators of large models.
    Gemm,
    /// Normalizations, activations, losses.
    Ops,
    /// Fusion patterns.
    Fusion,
    /// Memory, linear algebra and launch probes that calibrate a machine.
    Calibration,
    /// Copies between host and device, and transfers between devices.
    Links,
    /// Training passes of a layer.
    Training,
    /// Operators that other benchmarks measure on other hardware.
    Elsewhere,
    /// Operators registered by other crates.
    Custom,
    /// External programs: commands, shared libraries, CUDA C++ kernels.
    Foreign,
}

impl Suite {
    /// All suites.
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

    /// Name of the suite.
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

/// First component of a case id: the mode of a model, or the suite of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Mode {
    /// Forward passes of a model.
    #[default]
    Inference,
    /// Training passes of a layer.
    Training,
    /// Operator of a suite.
    Operator(Suite),
}

impl Mode {
    fn all() -> impl Iterator<Item = Self> {
        [Self::Inference].into_iter().chain(Suite::ALL.map(Self::for_suite))
    }

    /// Mode of the operators of a suite.
    pub fn for_suite(suite: Suite) -> Self {
        if suite == Suite::Training { Self::Training } else { Self::Operator(suite) }
    }

    /// Name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inference => "inference",
            Self::Training => "training",
            Self::Operator(suite) => suite.name(),
        }
    }

    /// True for external programs, whose implementations have their own names.
    pub fn is_foreign(self) -> bool {
        self == Self::Operator(Suite::Foreign)
    }

    /// True for operators of all suites except training; they have no recipes.
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
    "mode: inference, training, or the suite of an operator",
    Mode::all().map(|mode| mode.to_string()).collect()
);
