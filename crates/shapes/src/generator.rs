//! Shape generators.

use crate::parameter::{GeneratorSettings, Parameter};
use crate::{NamedShape, ShapeError};
use std::path::Path;

/// A named generator of shapes. Other crates add their own with [`register`](crate::register).
#[derive(Debug)]
pub struct Generator {
    /// `name` of a source in a configuration file.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Parameters. Parameters with equal names have the same kind in all generators.
    pub parameters: &'static [Parameter],
    /// Checks parameters against each other and returns the number of shapes without generating them; `None` if it
    /// depends on a file.
    pub count: fn(&GeneratorSettings) -> Result<Option<u64>, ShapeError>,
    /// Generates the shapes; relative paths start at the given folder.
    pub shapes: fn(&GeneratorSettings, &Path) -> Result<Vec<NamedShape>, ShapeError>,
}

impl Generator {
    /// Parameter with this name, or an error that lists the available ones.
    pub(crate) fn parameter(&self, name: &str) -> Result<&'static Parameter, ShapeError> {
        self.parameters.iter().find(|parameter| parameter.name == name).ok_or_else(|| ShapeError::UnknownParameter {
            generator: self.name,
            found: name.to_owned(),
            takes: self.parameters.iter().map(|parameter| parameter.name).collect(),
        })
    }
}
