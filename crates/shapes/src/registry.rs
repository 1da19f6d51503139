//! Registry of shape generators: built-in ones, and those of other crates.

use crate::parameter::Parameter;
use crate::{Generator, ShapeError, generators};
use calorimeter_case::Registry;
use std::mem::discriminant;
use std::sync::{LazyLock, Mutex, PoisonError};

static GENERATORS: LazyLock<Registry<Generator>> = LazyLock::new(|| {
    let generators = Registry::new("shape generator");
    for &generator in generators::BUILT_IN {
        add(&generators, generator).expect("built-in generators have distinct names");
    }
    generators
});

/// Registers a generator for the rest of the process, so that files, lists and schemas accept it. Fails if the name is
/// taken, or if a parameter has another kind in another generator.
///
/// ```
/// use calorimeter_shapes::{Generator, NamedShape, Parameter, ParameterKind, ShapeError, ShapeSource, register};
///
/// const ROWS: Parameter = Parameter { name: "m", about: "rows", kind: ParameterKind::Sizes { default: &[1, 16] } };
///
/// static TALL: Generator = Generator {
///     name: "tall",
///     about: "many rows of 64",
///     parameters: &[ROWS],
///     count: |settings| Ok(Some(settings.sizes(&ROWS).len() as u64)),
///     shapes: |settings, _| settings.sizes(&ROWS).iter().map(|m| NamedShape::new("tall", [m * 1024, 64, 64])).collect(),
/// };
///
/// register(&TALL)?;
/// let source: ShapeSource = serde_yaml::from_str("{name: tall, m: [2]}").unwrap();
/// assert_eq!(source.shapes()?[0].shape.to_string(), "m2048-k64-n64");
/// assert!(matches!("tal".parse::<ShapeSource>(), Err(ShapeError::Unknown { .. })));
/// # Ok::<(), ShapeError>(())
/// ```
pub fn register(generator: &'static Generator) -> Result<(), ShapeError> {
    static REGISTRATION: Mutex<()> = Mutex::new(());
    let _guard = REGISTRATION.lock().unwrap_or_else(PoisonError::into_inner);
    add(&GENERATORS, generator)
}

fn add(generators: &Registry<Generator>, generator: &'static Generator) -> Result<(), ShapeError> {
    let name = generator.name;
    let known = generators.all();
    for parameter in generator.parameters {
        let has_name = |known: &&Parameter| known.name == parameter.name;
        let other = known.iter().flat_map(|known| known.parameters).find(has_name);
        if parameter.name == "name"
            || other.is_some_and(|known| discriminant(&known.kind) != discriminant(&parameter.kind))
        {
            return Err(ShapeError::ParameterTaken { generator: name, parameter: parameter.name });
        }
    }
    generators.add(name, generator).map_err(|_| ShapeError::GeneratorTaken { generator: name })
}

/// All generators, in order of registration.
pub fn all_generators() -> impl Iterator<Item = &'static Generator> {
    GENERATORS.all().into_iter()
}

/// Names of all generators.
pub(crate) fn names() -> Vec<&'static str> {
    all_generators().map(|generator| generator.name).collect()
}

/// Generator with this name, or an error that lists all generators.
pub(crate) fn find(name: &str) -> Result<&'static Generator, ShapeError> {
    all_generators().find(|generator| generator.name == name).ok_or_else(|| ShapeError::Unknown {
        what: "shape generator",
        found: name.to_owned(),
        known: names(),
    })
}

/// Parameter of any generator, for keys that precede the generator's name. Parameters with equal names have equal
/// kinds; only defaults differ.
pub(crate) fn find_parameter(name: &str) -> Result<&'static Parameter, ShapeError> {
    let parameters = || all_generators().flat_map(|generator| generator.parameters);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParameterKind;
    use crate::generators::listing;

    #[test]
    fn conflicting_registrations_are_rejected() {
        const fn generator(name: &'static str, parameters: &'static [Parameter]) -> Generator {
            Generator { name, about: "", parameters, count: |_| Ok(None), shapes: |_, _| Ok(vec![]) }
        }
        static LLAMA: Generator = generator("llama", &[]);
        static POWERS: Generator =
            generator("mine", &[Parameter { name: "m", about: "", kind: ParameterKind::Power { default: 1 } }]);
        static NAME: Generator = generator("mine", &[Parameter { name: "name", about: "", kind: ParameterKind::Path }]);
        for (generator, error) in [
            (&LLAMA, ShapeError::GeneratorTaken { generator: "llama" }),
            (&POWERS, ShapeError::ParameterTaken { generator: "mine", parameter: "m" }),
            (&NAME, ShapeError::ParameterTaken { generator: "mine", parameter: "name" }),
        ] {
            assert_eq!(register(generator), Err(error));
        }
    }

    #[test]
    fn generators_run_with_default_parameters() {
        for generator in all_generators().filter(|g| !g.parameters.iter().any(|p| p.kind.is_required())) {
            assert!(!listing(&format!("name: {}", generator.name)).is_empty());
        }
    }
}
