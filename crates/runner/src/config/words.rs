//! Words of a configuration file that are read exactly: devices, models, implementations, compile modes.

use calorimeter_case::UnknownName;
use calorimeter_zoo::{Device, Implementation, Operator, Subject, ZooError};
use std::{borrow::Cow, fmt, str::FromStr};

/// A device as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    /// The best one that is there.
    #[default]
    Auto,
    /// The first Intel GPU, which torch calls `xpu`.
    Xpu,
    /// This one.
    This(Device),
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "auto" => Ok(Self::Auto),
            "xpu" => Ok(Self::Xpu),
            _ => name.parse().map(Self::This).map_err(|error: UnknownName| format!("{error}, auto, xpu, mps")),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Xpu => f.write_str("xpu"),
            Self::This(device) => device.fmt(f),
        }
    }
}

/// A model or an operator of the zoo by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelName(pub Subject);

impl FromStr for ModelName {
    type Err = ZooError;

    fn from_str(name: &str) -> Result<Self, ZooError> {
        name.parse().map(Self)
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An operator of the zoo by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperatorName(pub Operator);

impl FromStr for OperatorName {
    type Err = ZooError;

    fn from_str(name: &str) -> Result<Self, ZooError> {
        name.parse().map(Self)
    }
}

impl fmt::Display for OperatorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What torch is asked to compile, and so which implementations are its counterparts.
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
    /// The implementations that answer to it.
    pub fn implementations(self) -> Vec<Implementation> {
        match self {
            Self::Off => vec![Implementation::Eager],
            Self::Default | Self::ReduceOverhead => vec![Implementation::Eager, Implementation::Fused],
            Self::MaxAutotune | Self::MaxAutotuneNoCudagraphs => Implementation::ALL.to_vec(),
        }
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

/// Serde and JSON Schema through `FromStr` and `Display`; the error is raised at the word itself, so it has a position.
macro_rules! word {
    ($type:ident, $expecting:literal, $examples:expr) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Word;
                impl serde::de::Visitor<'_> for Word {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<$type, E> {
                        word.parse().map_err(E::custom)
                    }

                    fn visit_bool<E: serde::de::Error>(self, word: bool) -> Result<$type, E> {
                        word.to_string().parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Word)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let examples: Vec<String> = $examples;
                schemars::json_schema!({ "type": ["string", "boolean"], "examples": examples, "description": $expecting })
            }
        }
    };
}

word!(
    Wanted,
    "a device: auto, cuda, cuda:1, vulkan, metal, wgpu, cpu; torch's xpu and mps are understood",
    ["auto", "cuda", "vulkan", "metal", "cpu"].map(str::to_owned).to_vec()
);
word!(ModelName, "a model or an operator of the zoo", Subject::names());
word!(OperatorName, "an operator of the zoo", Operator::all().iter().map(ToString::to_string).collect());
word!(
    CompileMode,
    "what torch would compile: false, default, reduce-overhead, max-autotune or max-autotune-no-cudagraphs",
    MODES.map(|(_, name)| name.to_owned()).to_vec()
);
