//! What a generator can be told: its parameters, their values and their defaults.

use crate::ShapeError;
use crate::number::WholeNumber;
use crate::shape::{Shape, size_of};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The largest exponent of two: a cube of 2^20 is the largest whose operations fit 64 bits.
pub const MAX_POWER: u64 = 20;

/// One parameter of a generator.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// The key in a configuration file.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// What it takes.
    pub kind: Kind,
}

/// What a parameter takes, and what stands in for it when it is left out.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Kind {
    /// An exponent of two, up to [`MAX_POWER`].
    Power {
        /// Used when it is left out.
        default: u64,
    },
    /// A list of sizes, none of them twice.
    Sizes {
        /// Used when it is left out.
        default: &'static [u64],
    },
    /// A list of known names, none of them twice; all of them when it is left out.
    Names {
        /// What one of them is called in an error.
        what: &'static str,
        /// The names there are.
        known: &'static [&'static str],
    },
    /// A list of shapes; cannot be left out.
    Shapes,
    /// The path of a file; cannot be left out.
    Path,
}

/// A value given to a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// An exponent of two.
    Power(u64),
    /// Sizes.
    Sizes(Vec<u64>),
    /// Names out of those known.
    Names(Vec<String>),
    /// Shapes.
    Shapes(Vec<Shape>),
    /// The path of a file.
    Path(PathBuf),
}

/// The values that were given; a parameter that was not given reads as its default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    given: Vec<(&'static str, Value)>,
}

impl Kind {
    /// What it takes, in words.
    pub fn expects(self) -> &'static str {
        match self {
            Self::Power { .. } => "an exponent of two",
            Self::Sizes { .. } => "a list of sizes",
            Self::Names { .. } => "a list of names",
            Self::Shapes => "a list of shapes [m, k, n]",
            Self::Path => "the path of a file",
        }
    }

    /// Whether the generator cannot do without it.
    pub fn required(self) -> bool {
        matches!(self, Self::Shapes | Self::Path)
    }

    /// What stands in for it when it is left out, as it would be written.
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
    /// What it is, in words.
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
    /// What a number given to it must be.
    pub(crate) fn power(&self) -> WholeNumber<'_> {
        WholeNumber { name: self.name, from: 0, to: MAX_POWER }
    }

    /// Whether the value is of its kind, within bounds, and a list without repeats.
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
            // The historical `custom` list may repeat a shape.
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

/// Whether a name is one of those known.
pub(crate) fn check_known(what: &'static str, known: &[&'static str], found: &str) -> Result<(), ShapeError> {
    if known.contains(&found) {
        return Ok(());
    }
    Err(ShapeError::Unknown { what, found: found.to_owned(), known: known.to_vec() })
}

impl Settings {
    /// `given` has passed the checks of the parameters it names.
    pub(crate) fn new(given: Vec<(&'static str, Value)>) -> Self {
        Self { given }
    }

    /// The values that were given, in the order of the generator's table.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.given.iter().map(|(name, value)| (*name, value))
    }

    fn get(&self, parameter: &Parameter) -> Option<&Value> {
        self.given().find(|(name, _)| *name == parameter.name).map(|(_, value)| value)
    }

    /// The exponent that a parameter of [`Kind::Power`] was given, or its default.
    ///
    /// # Panics
    /// If the parameter is none of this generator, or of another kind.
    pub fn power(&self, parameter: &Parameter) -> u64 {
        match (self.get(parameter), parameter.kind) {
            (Some(Value::Power(power)), _) => *power,
            (None, Kind::Power { default }) => default,
            _ => mismatch(parameter),
        }
    }

    /// The sizes of a parameter of [`Kind::Sizes`].
    ///
    /// # Panics
    /// If the parameter is none of this generator, or of another kind.
    pub fn sizes(&self, parameter: &Parameter) -> &[u64] {
        match (self.get(parameter), parameter.kind) {
            (Some(Value::Sizes(sizes)), _) => sizes,
            (None, Kind::Sizes { default }) => default,
            _ => mismatch(parameter),
        }
    }

    /// The names of a parameter of [`Kind::Names`].
    ///
    /// # Panics
    /// If the parameter is none of this generator, or of another kind.
    pub fn names(&self, parameter: &Parameter) -> Vec<&str> {
        match (self.get(parameter), parameter.kind) {
            (Some(Value::Names(names)), _) => names.iter().map(String::as_str).collect(),
            (None, Kind::Names { known, .. }) => known.to_vec(),
            _ => mismatch(parameter),
        }
    }

    /// The shapes of a parameter of [`Kind::Shapes`].
    ///
    /// # Panics
    /// If the parameter is none of this generator, or of another kind.
    pub fn shapes(&self, parameter: &Parameter) -> &[Shape] {
        match self.get(parameter) {
            Some(Value::Shapes(shapes)) => shapes,
            _ => mismatch(parameter),
        }
    }

    /// The path of a parameter of [`Kind::Path`].
    ///
    /// # Panics
    /// If the parameter is none of this generator, or of another kind.
    pub fn path(&self, parameter: &Parameter) -> &Path {
        match self.get(parameter) {
            Some(Value::Path(path)) => path,
            _ => mismatch(parameter),
        }
    }
}

/// A source checks every value against the same table before its generator reads it.
fn mismatch(parameter: &Parameter) -> ! {
    unreachable!("{} was not checked, or is read as something it is not", parameter.name)
}
