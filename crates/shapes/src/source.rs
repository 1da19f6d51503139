//! Shape sources: a generator with its parameter values.

use crate::parameter::{GeneratorSettings, SettingValue};
use crate::{Generator, MAX_SHAPES, NamedShape, ShapeError, registry};
use std::path::Path;
use std::str::FromStr;

/// A generator with checked parameter values; in a configuration file `{name: pow2, max_power: 12}`.
#[derive(Debug, Clone)]
pub struct ShapeSource {
    generator: &'static Generator,
    settings: GeneratorSettings,
}

impl ShapeSource {
    /// Creates a source from a generator's name and parameter values.
    ///
    /// ```
    /// use calorimeter_shapes::{SettingValue, Shape, ShapeSource};
    ///
    /// let cubes = ShapeSource::new("pow2", [("max_power", SettingValue::Power(12))])?;
    /// assert_eq!(cubes.count(), Some(3));
    /// let one = ShapeSource::new("custom", [("shapes", SettingValue::Shapes(vec![Shape::new(8, 4096, 4096)?]))])?;
    /// assert_eq!(one.shapes()?[0].shape.to_string(), "m8-k4096-n4096");
    /// # Ok::<(), calorimeter_shapes::ShapeError>(())
    /// ```
    pub fn new<'a>(
        name: &str,
        parameters: impl IntoIterator<Item = (&'a str, SettingValue)>,
    ) -> Result<Self, ShapeError> {
        Self::build(registry::find(name)?, parameters)
    }

    /// Checks each value, then the combination of values, then the number of shapes.
    pub(crate) fn build<'a>(
        generator: &'static Generator,
        parameters: impl IntoIterator<Item = (&'a str, SettingValue)>,
    ) -> Result<Self, ShapeError> {
        let mut values: Vec<(&'static str, SettingValue)> = Vec::new();
        for (name, value) in parameters {
            let parameter = generator.parameter(name)?;
            if values.iter().any(|(earlier, _)| *earlier == name) {
                return Err(ShapeError::DuplicateName { name: name.to_owned() });
            }
            parameter.check(&value)?;
            values.push((parameter.name, value));
        }
        let is_explicit = |name| values.iter().any(|(earlier, _)| *earlier == name);
        if let Some(absent) = generator.parameters.iter().find(|p| p.kind.is_required() && !is_explicit(p.name)) {
            return Err(ShapeError::MissingParameter {
                generator: generator.name,
                parameter: absent.name,
                about: absent.about,
            });
        }
        // Sorted, so that equality is independent of the order of keys.
        values.sort_by_key(|(name, _)| generator.parameters.iter().position(|p| p.name == *name));
        let source = Self { generator, settings: GeneratorSettings::new(values) };
        match (generator.count)(&source.settings)? {
            Some(count) if count > MAX_SHAPES => Err(ShapeError::TooMany {
                what: generator.name.to_owned(),
                count: count.into(),
                narrow: format!(
                    "narrow {}",
                    generator.parameters.iter().map(|p| p.name).collect::<Vec<_>>().join(" or ")
                ),
            }),
            _ => Ok(source),
        }
    }

    /// Generator of the source.
    pub fn generator(&self) -> &'static Generator {
        self.generator
    }

    /// Parameter values of the source.
    pub fn settings(&self) -> &GeneratorSettings {
        &self.settings
    }

    /// Number of shapes, computed without generating them; `None` if it depends on a file.
    pub fn count(&self) -> Option<u64> {
        (self.generator.count)(&self.settings).ok().flatten()
    }

    /// Generates the shapes in the generator's order; relative paths start at the working directory.
    pub fn shapes(&self) -> Result<Vec<NamedShape>, ShapeError> {
        self.shapes_in(Path::new("."))
    }

    /// Generates the shapes in the generator's order; relative paths start at `base`, usually the configuration's
    /// folder.
    pub fn shapes_in(&self, base: &Path) -> Result<Vec<NamedShape>, ShapeError> {
        (self.generator.shapes)(&self.settings, base)
    }
}

impl PartialEq for ShapeSource {
    fn eq(&self, other: &Self) -> bool {
        self.generator.name == other.generator.name && self.settings == other.settings
    }
}

impl Eq for ShapeSource {}

/// Creates a source from a generator's name with default parameters.
impl FromStr for ShapeSource {
    type Err = ShapeError;

    fn from_str(name: &str) -> Result<Self, ShapeError> {
        Self::new(name, [])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;

    #[test]
    fn sources_built_in_code_are_checked() {
        let shape = Shape::new(1, 2, 3).unwrap();
        for (name, parameters, expected) in [
            (
                "lama",
                vec![],
                ShapeError::Unknown { what: "shape generator", found: "lama".into(), known: crate::registry::names() },
            ),
            (
                "llama",
                vec![("m", SettingValue::Sizes(vec![1]))],
                ShapeError::UnknownParameter { generator: "llama", found: "m".into(), takes: vec![] },
            ),
            ("custom", vec![("shapes", SettingValue::Shapes(vec![]))], ShapeError::EmptyList { name: "shapes".into() }),
            (
                "pow2",
                vec![("min_power", SettingValue::Shapes(vec![shape]))],
                ShapeError::WrongValue { parameter: "min_power", expects: "an exponent of two", found: "shapes" },
            ),
            (
                "pow2",
                vec![("max_power", SettingValue::Power(21))],
                ShapeError::Number { name: "max_power".into(), found: "21".into(), from: 0, to: 20 },
            ),
            (
                "sweep",
                vec![("min_power", SettingValue::Power(16))],
                ShapeError::PowersReversed { generator: "sweep", min: 16, max: 15 },
            ),
            (
                "decode",
                vec![("m", SettingValue::Sizes(vec![8, 1, 8]))],
                ShapeError::DuplicateEntry { name: "m", value: "8".into() },
            ),
            (
                "pow2",
                vec![("max_power", SettingValue::Power(12)), ("max_power", SettingValue::Power(13))],
                ShapeError::DuplicateName { name: "max_power".into() },
            ),
        ] {
            assert_eq!(ShapeSource::new(name, parameters), Err(expected));
        }
        let unknown = ShapeSource::new("decode", [("models", SettingValue::Names(vec!["llama_8b".into()]))]);
        assert!(matches!(&unknown, Err(ShapeError::Unknown { found, .. }) if found == "llama_8b"), "{unknown:?}");
        let many = ShapeSource::new("decode", [("m", SettingValue::Sizes((1..=100_000).collect()))]);
        assert!(matches!(many, Err(ShapeError::TooMany { count: 2_500_000, .. })), "{many:?}");
    }

    #[test]
    fn bare_name_uses_defaults_or_names_what_is_missing() {
        assert_eq!("pow2".parse::<ShapeSource>().unwrap().count(), Some(5));
        for (generator, parameter) in [("csv", "path"), ("custom", "shapes")] {
            let error = generator.parse::<ShapeSource>().unwrap_err();
            assert!(
                matches!(error, ShapeError::MissingParameter { generator: of, parameter: missing, .. }
                    if (of, missing) == (generator, parameter)),
                "{error:?}"
            );
        }
    }
}
