//! Parameters of generators: kinds, values and defaults.

use crate::ShapeError;
use crate::number::WholeNumber;
use crate::shape::{Shape, size_of};
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
    pub kind: Kind,
}

/// Kind of value of a parameter, with its default.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Kind {
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
    /// List of shapes; required.
    Shapes,
    /// Path of a file; required.
    Path,
}

/// Value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// Exponent of two.
    Power(u64),
    /// Sizes.
    Sizes(Vec<u64>),
    /// Known names.
    Names(Vec<String>),
    /// Shapes.
    Shapes(Vec<Shape>),
    /// Path of a file.
    Path(PathBuf),
}

/// Explicit parameter values; other parameters have their defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    given: Vec<(&'static str, Value)>,
}

impl Kind {
    /// Describes the expected value.
    pub fn expects(self) -> &'static str {
        match self {
            Self::Power { .. } => "an exponent of two",
            Self::Sizes { .. } => "a list of sizes",
            Self::Names { .. } => "a list of names",
            Self::Shapes => "a list of shapes [m, k, n]",
            Self::Path => "the path of a file",
        }
    }

    /// True if the parameter has no default.
    pub fn required(self) -> bool {
        matches!(self, Self::Shapes | Self::Path)
    }

    /// Default as text, if there is one.
    pub fn default_text(self) -> Option<String> {
        match self {
            Self::Power { default } => Some(default.to_string()),
            Self::Sizes { default } => Some(format!("{default:?}")),
            Self::Names { known, .. } => Some(format!("[{}]", known.join(", "))),
            Self::Shapes | Self::Path => None,
        }
    }
}

impl Value {
    /// Describes the kind of the value.
    fn describe(&self) -> &'static str {
        match self {
            Self::Power(_) => "an exponent",
            Self::Sizes(_) => "sizes",
            Self::Names(_) => "names",
            Self::Shapes(_) => "shapes",
            Self::Path(_) => "a path",
        }
    }
}

impl Parameter {
    /// Bounds of a [`Kind::Power`].
    pub(crate) fn power(&self) -> WholeNumber<'_> {
        WholeNumber { name: self.name, from: 0, to: MAX_POWER }
    }

    /// Checks the kind and bounds of a value, and that lists have no duplicates.
    pub(crate) fn check(&self, value: &Value) -> Result<(), ShapeError> {
        match (self.kind, value) {
            (Kind::Power { .. }, Value::Power(power)) => self.power().check(*power).map(drop),
            (Kind::Sizes { .. }, Value::Sizes(sizes)) => {
                sizes.iter().try_for_each(|size| size_of(self.name).check(*size).map(drop))?;
                self.check_list(sizes)
            }
            (Kind::Names { what, known }, Value::Names(names)) => {
                names.iter().try_for_each(|name| check_known(what, known, name))?;
                self.check_list(names)
            }
            // `custom` has always accepted duplicate shapes.
            (Kind::Shapes, Value::Shapes(shapes)) => self.check_filled(shapes),
            (Kind::Path, Value::Path(_)) => Ok(()),
            (kind, value) => {
                Err(ShapeError::WrongValue { parameter: self.name, expects: kind.expects(), found: value.describe() })
            }
        }
    }

    fn check_list<T: Ord + Display>(&self, entries: &[T]) -> Result<(), ShapeError> {
        self.check_filled(entries)?;
        let mut seen = BTreeSet::new();
        match entries.iter().find(|entry| !seen.insert(*entry)) {
            Some(entry) => Err(ShapeError::ListedTwice { name: self.name, value: entry.to_string() }),
            None => Ok(()),
        }
    }

    fn check_filled<T>(&self, entries: &[T]) -> Result<(), ShapeError> {
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

impl Settings {
    /// Creates settings from values that have passed their parameters' checks.
    pub(crate) fn new(given: Vec<(&'static str, Value)>) -> Self {
        Self { given }
    }

    /// Explicit values, in the order of the generator's parameters.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.given.iter().map(|(name, value)| (*name, value))
    }

    fn get(&self, parameter: &Parameter) -> Option<&Value> {
        self.given().find(|(name, _)| *name == parameter.name).map(|(_, value)| value)
    }

    /// Exponent of a [`Kind::Power`], or its default.
    ///
    /// # Panics
    /// If the parameter belongs to another generator or has another kind.
    pub fn power(&self, parameter: &Parameter) -> u64 {
        match (self.get(parameter), parameter.kind) {
            (Some(Value::Power(power)), _) => *power,
            (None, Kind::Power { default }) => default,
            _ => mismatch(parameter),
        }
    }

    /// Sizes of a [`Kind::Sizes`], or its default.
    ///
    /// # Panics
    /// If the parameter belongs to another generator or has another kind.
    pub fn sizes(&self, parameter: &Parameter) -> &[u64] {
        match (self.get(parameter), parameter.kind) {
            (Some(Value::Sizes(sizes)), _) => sizes,
            (None, Kind::Sizes { default }) => default,
            _ => mismatch(parameter),
        }
    }

    /// Names of a [`Kind::Names`], or all known names.
    ///
    /// # Panics
    /// If the parameter belongs to another generator or has another kind.
    pub fn names(&self, parameter: &Parameter) -> Vec<&str> {
        match (self.get(parameter), parameter.kind) {
            (Some(Value::Names(names)), _) => names.iter().map(String::as_str).collect(),
            (None, Kind::Names { known, .. }) => known.to_vec(),
            _ => mismatch(parameter),
        }
    }

    /// Shapes of a [`Kind::Shapes`].
    ///
    /// # Panics
    /// If the parameter belongs to another generator or has another kind.
    pub fn shapes(&self, parameter: &Parameter) -> &[Shape] {
        match self.get(parameter) {
            Some(Value::Shapes(shapes)) => shapes,
            _ => mismatch(parameter),
        }
    }

    /// Path of a [`Kind::Path`].
    ///
    /// # Panics
    /// If the parameter belongs to another generator or has another kind.
    pub fn path(&self, parameter: &Parameter) -> &Path {
        match self.get(parameter) {
            Some(Value::Path(path)) => path,
            _ => mismatch(parameter),
        }
    }
}

/// Panics: sources check all values against the parameters before a generator reads them.
fn mismatch(parameter: &Parameter) -> ! {
    unreachable!("parameter {} was not checked, or has another kind", parameter.name)
}
