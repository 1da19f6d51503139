//! What a shape generator is.

use crate::parameter::{Parameter, Settings};
use crate::{NamedShape, ShapeError};
use std::path::Path;

/// One way to make shapes. A crate that has one of its own makes it known with [`register`](crate::register).
#[derive(Debug)]
pub struct Generator {
    /// The `name` of a source in a configuration file.
    pub name: &'static str,
    /// What it makes, in a line.
    pub about: &'static str,
    /// What it can be told. A parameter of one name takes the same kind of value in every generator.
    pub parameters: &'static [Parameter],
    /// Checks parameters against each other and counts, without making anything; `None` when only a file can tell.
    pub count: fn(&Settings) -> Result<Option<u64>, ShapeError>,
    /// Makes the shapes; relative paths start at the given folder.
    pub shapes: fn(&Settings, &Path) -> Result<Vec<NamedShape>, ShapeError>,
}

impl Generator {
    /// The parameter of that name, or an error that lists those there are.
    pub(crate) fn parameter(&self, name: &str) -> Result<&'static Parameter, ShapeError> {
        self.parameters.iter().find(|parameter| parameter.name == name).ok_or_else(|| ShapeError::UnknownParameter {
            generator: self.name,
            found: name.to_owned(),
            takes: self.parameters.iter().map(|parameter| parameter.name).collect(),
        })
    }
}
