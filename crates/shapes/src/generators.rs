//! The table of shape generators: a new one is a file here and its entry in [`FAMILIES`].

mod csv;
mod custom;
mod decode;
mod llama;
mod powers;
mod published;
mod sweep;

use crate::parameter::{Parameter, Settings};
use crate::{NamedShape, ShapeError};
use std::path::Path;

/// Every generator, in the order in which they are listed.
static FAMILIES: &[&[Generator]] = &[
    custom::GENERATORS,
    llama::GENERATORS,
    powers::GENERATORS,
    sweep::GENERATORS,
    published::GENERATORS,
    decode::GENERATORS,
    csv::GENERATORS,
];

/// One way to make shapes.
#[derive(Debug)]
pub struct Generator {
    /// The `name` of a source in a configuration file.
    pub name: &'static str,
    /// What it makes, in a line.
    pub about: &'static str,
    /// What it can be told.
    pub parameters: &'static [Parameter],
    /// Checks parameters against each other and counts, without making anything; `None` when only a file can tell.
    pub(crate) count: fn(&Settings) -> Result<Option<u64>, ShapeError>,
    /// Makes the shapes; relative paths start at the given folder.
    pub(crate) shapes: fn(&Settings, &Path) -> Result<Vec<NamedShape>, ShapeError>,
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

/// Every generator there is, with its parameters.
pub fn known() -> impl Iterator<Item = &'static Generator> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// The names of the generators.
pub(crate) fn names() -> Vec<&'static str> {
    known().map(|generator| generator.name).collect()
}

/// The generator of that name, or an error that lists those there are.
pub(crate) fn find(name: &str) -> Result<&'static Generator, ShapeError> {
    known().find(|generator| generator.name == name).ok_or_else(|| ShapeError::Unknown {
        what: "shape generator",
        found: name.to_owned(),
        known: names(),
    })
}

/// A parameter looked up before the generator is known; equal names mean equal kinds, whatever their defaults.
pub(crate) fn parameter_anywhere(name: &str) -> Result<&'static Parameter, ShapeError> {
    let parameters = || known().flat_map(|generator| generator.parameters);
    parameters().find(|parameter| parameter.name == name).ok_or_else(|| {
        let mut takes = vec!["name"];
        for parameter in parameters() {
            if !takes.contains(&parameter.name) {
                takes.push(parameter.name);
            }
        }
        ShapeError::UnknownParameter { generator: "a shape source", found: name.to_owned(), takes }
    })
}

/// What the tests of the generators share: `name m k n` of each shape of a source written in YAML.
#[cfg(test)]
fn listing(yaml: &str) -> Vec<String> {
    let source: crate::ShapeSource = serde_yaml::from_str(yaml).unwrap();
    let shapes = source.shapes().unwrap();
    if let Some(count) = source.count() {
        assert_eq!(count, shapes.len() as u64, "{yaml}: the count and the shapes differ");
    }
    shapes.iter().map(|s| format!("{} {} {} {}", s.name, s.shape.m(), s.shape.k(), s.shape.n())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::mem::discriminant;

    #[test]
    fn no_two_generators_share_a_name() {
        assert_eq!(names().len(), names().iter().collect::<BTreeSet<_>>().len());
    }

    #[test]
    fn a_parameter_means_the_same_everywhere() {
        for parameter in known().flat_map(|generator| generator.parameters) {
            let first = parameter_anywhere(parameter.name).unwrap();
            assert_eq!(discriminant(&first.kind), discriminant(&parameter.kind), "{}", parameter.name);
            assert_ne!(parameter.name, "name");
        }
    }

    #[test]
    fn whatever_needs_nothing_runs_on_its_defaults() {
        for generator in known().filter(|g| !g.parameters.iter().any(|p| p.kind.required())) {
            assert!(!listing(&format!("name: {}", generator.name)).is_empty());
        }
    }
}
