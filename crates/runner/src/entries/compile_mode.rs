//! Compile modes of torch.

use super::word::word;
use calorimeter_case::UnknownName;
use calorimeter_zoo::Implementation;
use std::fmt;
use std::str::FromStr;

/// Compile mode of torch, which determines the corresponding implementations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompileMode {
    /// Not compiled.
    Off,
    /// `default`.
    Default,
    /// `reduce-overhead`.
    ReduceOverhead,
    /// `max-autotune`.
    MaxAutotune,
    /// `max-autotune-no-cudagraphs`.
    MaxAutotuneNoCudagraphs,
}

const MODES: [(CompileMode, &str); 5] = [
    (CompileMode::Off, "false"),
    (CompileMode::Default, "default"),
    (CompileMode::ReduceOverhead, "reduce-overhead"),
    (CompileMode::MaxAutotune, "max-autotune"),
    (CompileMode::MaxAutotuneNoCudagraphs, "max-autotune-no-cudagraphs"),
];

impl CompileMode {
    /// Implementations that correspond to this mode.
    pub fn implementations(self) -> Vec<Implementation> {
        match self {
            Self::Off => vec![Implementation::Eager],
            Self::Default | Self::ReduceOverhead => vec![Implementation::Eager, Implementation::Fused],
            Self::MaxAutotune | Self::MaxAutotuneNoCudagraphs => Implementation::ALL.to_vec(),
        }
    }

    /// Implementations of PyTorch that correspond to this mode.
    pub fn torch_implementations(self) -> Vec<Implementation> {
        let names = match self {
            Self::Off => &["torch"][..],
            Self::Default | Self::ReduceOverhead => &["torch", "torch-compile"],
            Self::MaxAutotune | Self::MaxAutotuneNoCudagraphs => &["torch", "torch-compile-max"],
        };
        names.iter().map(|name| Implementation::from_record(name)).collect()
    }
}

impl FromStr for CompileMode {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let found = MODES.iter().find(|(_, spelling)| *spelling == name).map(|(mode, _)| *mode);
        found.ok_or_else(|| UnknownName::new("compile mode", name, MODES.map(|(_, name)| name)))
    }
}

impl fmt::Display for CompileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MODES.iter().find(|(mode, _)| mode == self).map_or("", |(_, name)| name))
    }
}

word!(
    CompileMode,
    "a torch compile mode: false, default, reduce-overhead, max-autotune or max-autotune-no-cudagraphs",
    {
        let names: Vec<serde_json::Value> =
            MODES.map(|(_, name)| name.into()).into_iter().chain([false.into()]).collect();
        schemars::json_schema!({ "enum": names })
    }
);
