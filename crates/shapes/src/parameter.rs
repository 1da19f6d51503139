//! Parameters of generators: kinds, values and defaults.

use crate::ShapeError;
use crate::number::WholeNumber;
use crate::shape::{Shape, size_bounds};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Maximum exponent of two: a cube of 2^20 is the largest whose operations fit 64 bits.
pub const MAX_POWER: u64 = 20;

/// Parameter of a generator.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Key in a configuration file.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Kind of value.
    pub kind: ParameterKind,
}

/// Kind of value of a parameter, with its default.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ParameterKind {
    /// Exponent of two, up to [`MAX_POWER`].
    Power {
        /// Default.
        default: u64,
    },
    /// List of distinct sizes.
    Sizes {
        /// Default.
        default: &'static [u64],
    },
    /// List of distinct known names; the default is all of them.
    Names {
        /// Category of the names in errors.
        what: &'static str,
        /// Known names.
        known: &'static [&'static str],
    },
    /// True or false.
    Flag {
        /// Default.
        default: bool,
    },
    /// List of shapes; required.
    Shapes,
    /// Path of a file; required.
    Path,
}

/// Value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingValue {
    /// Exponent of two.
    Power(u64),
    /// Sizes.
    Sizes(Vec<u64>),
    /// Known names.
    Names(Vec<String>),
    /// True or false.
    Flag(bool),
    /// Shapes.
    Shapes(Vec<Shape>),
    /// Path of a file.
    Path(PathBuf),
}

/// Explicit parameter values; other parameters have their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GeneratorSettings {
    explicit_values: Vec<(&'static str, SettingValue)>,
}

impl ParameterKind {
    /// Describes the expected value.
    pub fn expects(self) -> &'static str {
        match self {
            Self::Power { .. } => "an exponent of two",
            Self::Sizes { .. } => "a list of sizes",
            Self::Names { .. } => "a list of names",
            Self::Flag { .. } => "true or false",
            Self::Shapes => "a list of shapes [m, k, n]",
            Self::Path => "the path of a file",
        }
    }

    /// True if the parameter has no default.
    pub fn is_required(self) -> bool {
        matches!(self, Self::Shapes | Self::Path)
    }

    /// Default as text, if there is one.
    pub fn default_text(self) -> Option<String> {
        match self {
            Self::Power { default } => Some(default.to_string()),
            Self::Sizes { default } => Some(format!("{default:?}")),
            Self::Names { known, .. } => Some(format!("[{}]", known.join(", "))),
            Self::Flag { default } => Some(default.to_string()),
            Self::Shapes | Self::Path => None,
        }
    }
}

impl SettingValue {
    /// Describes the kind of the value.
    fn describe(&self) -> &'static str {
        match self {
            Self::Power(_) => "an exponent",
            Self::Sizes(_) => "sizes",
            Self::Names(_) => "names",
            Self::Flag(_) => "true or false",
            Self::Shapes(_) => "shapes",
            Self::Path(_) => "a path",
        }
    }
}

impl Parameter {
    /// Bounds of a [`ParameterKind::Power`].
    pub(crate) fn power(&self) -> WholeNumber<'_> {
        WholeNumber { name: self.name, from: 0, to: MAX_POWER }
    }

    /// Checks the kind and bounds of a value, and that lists have no duplicates.
    pub(crate) fn check(&self, value: &SettingValue) -> Result<(), ShapeError> {
        match (self.kind, value) {
            (ParameterKind::Power { .. }, SettingValue::Power(power)) => self.power().check(*power).map(drop),
            (ParameterKind::Sizes { .. }, SettingValue::Sizes(sizes)) => {
                sizes.iter().try_for_each(|size| size_bounds(self.name).check(*size).map(drop))?;
                self.check_list(sizes)
            }
            (ParameterKind::Names { what, known }, SettingValue::Names(names)) => {
                names.iter().try_for_each(|name| check_known(what, known, name))?;
                self.check_list(names)
            }
            // `custom` has always accepted duplicate shapes.
            (ParameterKind::Shapes, SettingValue::Shapes(shapes)) => self.check_nonempty(shapes),
            (ParameterKind::Flag { .. }, SettingValue::Flag(_)) | (ParameterKind::Path, SettingValue::Path(_)) => {
                Ok(())
            }
            (kind, value) => {
                Err(ShapeError::WrongValue { parameter: self.name, expects: kind.expects(), found: value.describe() })
            }
        }
    }

    fn check_list<T: Ord + Display>(&self, entries: &[T]) -> Result<(), ShapeError> {
        self.check_nonempty(entries)?;
        let mut seen = BTreeSet::new();
        match entries.iter().find(|entry| !seen.insert(*entry)) {
            Some(entry) => Err(ShapeError::DuplicateEntry { name: self.name, value: entry.to_string() }),
            None => Ok(()),
        }
    }

    fn check_nonempty<T>(&self, entries: &[T]) -> Result<(), ShapeError> {
        if entries.is_empty() { Err(ShapeError::EmptyList { name: self.name.to_owned() }) } else { Ok(()) }
    }
}

/// Checks that a name is known.
pub(crate) fn check_known(what: &'static str, known: &[&'static str], found: &str) -> Result<(), ShapeError> {
    if known.contains(&found) {
        return Ok(());
    }
    Err(ShapeError::Unknown { what, found: found.to_owned(), known: known.to_vec() })
}

impl GeneratorSettings {
    /// Creates settings from values that have passed their parameters' checks.
    pub(crate) fn new(explicit_values: Vec<(&'static str, SettingValue)>) -> Self {
        Self { explicit_values }
    }

    /// Explicit values, in the order of the generator's parameters.
    pub fn explicit(&self) -> impl Iterator<Item = (&'static str, &SettingValue)> {
        self.explicit_values.iter().map(|(name, value)| (*name, value))
    }

    fn get(&self, parameter: &Parameter) -> Option<&SettingValue> {
        self.explicit().find(|(name, _)| *name == parameter.name).map(|(_, value)| value)
    }

    /// Exponent of a [`ParameterKind::Power`], or its default.
    ///
    /// # Panics
    /// If the parameter belongs to another generator or has another kind.
    pub fn power(&self, parameter: &Parameter) -> u64 {
        match (self.get(parameter), parameter.kind) {
            (Some(SettingValue::Power(power)), _) => *power,
            (None, ParameterKind::Power { default }) => default,
            _ => mismatch(parameter),
        }
    }

    /// Sizes of a [`ParameterKind::Sizes`], or its default.
    ///
    /// # Panics
    /// If the parameter belongs to another generator or has another kind.
    pub fn sizes(&self, parameter: &Parameter) -> &[u64] {
        match (self.get(parameter), parameter.kind) {
            (Some(SettingValue::Sizes(sizes)), _) => sizes,
            (None, ParameterKind::Sizes { default }) => default,
            _ => mismatch(parameter),
        }
    }

    /// Names of a [`ParameterKind::Names`], or all known names.
    ///
    /// # Panics
    /// If the parameter belongs to another generator or has another kind.
    pub fn names(&self, parameter: &Parameter) -> Vec<&str> {
        match (self.get(parameter), parameter.kind) {
            (Some(SettingValue::Names(names)), _) => names.iter().map(String::as_str).collect(),
            (None, ParameterKind::Names { known, .. }) => known.to_vec(),
            _ => mismatch(parameter),
        }
    }

    /// Value of a [`ParameterKind::Flag`], or its default.
    ///
    /// # Panics
    /// If the parameter belongs to another generator or has another kind.
    pub fn flag(&self, parameter: &Parameter) -> bool {
        match (self.get(parameter), parameter.kind) {
            (Some(SettingValue::Flag(flag)), _) => *flag,
            (None, ParameterKind::Flag { default }) => default,
            _ => mismatch(parameter),
        }
    }

    /// Shapes of a [`ParameterKind::Shapes`].
    ///
    /// # Panics
    /// If the parameter belongs to another generator or has another kind.
    pub fn shapes(&self, parameter: &Parameter) -> &[Shape] {
        match self.get(parameter) {
            Some(SettingValue::Shapes(shapes)) => shapes,
            _ => mismatch(parameter),
        }
    }

    /// Path of a [`ParameterKind::Path`].
    ///
    /// # Panics
    /// If the parameter belongs to another generator or has another kind.
    pub fn path(&self, parameter: &Parameter) -> &Path {
        match self.get(parameter) {
            Some(SettingValue::Path(path)) => path,
            _ => mismatch(parameter),
        }
    }
}

/// Panics: sources check all values against the parameters before a generator reads them.
fn mismatch(parameter: &Parameter) -> ! {
    unreachable!("parameter {} was not checked, or has another kind", parameter.name)
}
