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
            ("lama", vec![], "unknown shape generator \"lama\"; did you mean \"llama\"? known: custom, llama, pow2, "),
            ("llama", vec![("m", SettingValue::Sizes(vec![1]))], "llama does not take \"m\"; it takes no parameters"),
            ("custom", vec![], "custom needs shapes: the shapes as a list of [m, k, n]"),
            (
                "custom",
                vec![("shapes", SettingValue::Shapes(vec![]))],
                "shapes is an empty list: give it at least one entry",
            ),
            (
                "pow2",
                vec![("min_power", SettingValue::Shapes(vec![shape]))],
                "min_power takes an exponent of two, not shapes",
            ),
            (
                "pow2",
                vec![("max_power", SettingValue::Power(21))],
                "max_power is 21: it must be a whole number from 0 to 20",
            ),
            (
                "sweep",
                vec![("min_power", SettingValue::Power(16))],
                "sweep: min_power 16 is above max_power 15, which leaves no shapes: raise max_power or lower min_power",
            ),
            ("decode", vec![("m", SettingValue::Sizes(vec![8, 1, 8]))], "m lists 8 twice: keep one"),
            (
                "decode",
                vec![("models", SettingValue::Names(vec!["llama_8b".into()]))],
                "unknown model of decode \"llama_8b\"; did you mean \"llama3_8b\"? known: llama3_8b, llama3_70b, ",
            ),
            (
                "decode",
                vec![("m", SettingValue::Sizes((1..=100_000).collect()))],
                "decode would make 2500000 entries, more than 1000000: narrow models or m",
            ),
            (
                "pow2",
                vec![("max_power", SettingValue::Power(12)), ("max_power", SettingValue::Power(13))],
                "max_power is given twice: keep one",
            ),
        ] {
            let error = ShapeSource::new(name, parameters).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn bare_name_uses_defaults() {
        assert_eq!("pow2".parse::<ShapeSource>().unwrap().count(), Some(5));
        assert!("csv".parse::<ShapeSource>().unwrap_err().to_string().starts_with("csv needs path: "));
    }
}
