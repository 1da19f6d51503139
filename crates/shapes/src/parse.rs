//! Serde implementations of shapes and sources. Errors are raised inside visitors, where the format knows line and
//! column. The accepted parameters are defined by the generators.

use crate::parameter::{Parameter, ParameterKind, SettingValue, check_known};
use crate::shape::size_bounds;
use crate::{Generator, Shape, ShapeError, ShapeSource, registry};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.m(), self.k(), self.n()].serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a shape [m, k, n]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
        let mut sizes = [0; 3];
        for (index, axis) in ["m", "k", "n"].into_iter().enumerate() {
            sizes[index] = seq
                .next_element_seed(size_bounds(axis))?
                .ok_or(ShapeError::Arity { found: index })
                .map_err(Error::custom)?;
        }
        let mut found = 3;
        while seq.next_element::<IgnoredAny>()?.is_some() {
            found += 1;
        }
        if found != 3 {
            return Err(Error::custom(ShapeError::Arity { found }));
        }
        let [m, k, n] = sizes;
        Shape::new(m, k, n).map_err(Error::custom)
    }
}

impl Serialize for ShapeSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", self.generator().name)?;
        for (name, value) in self.settings().explicit() {
            match value {
                SettingValue::Power(power) => map.serialize_entry(name, power)?,
                SettingValue::Sizes(sizes) => map.serialize_entry(name, sizes)?,
                SettingValue::Names(names) => map.serialize_entry(name, names)?,
                SettingValue::Flag(flag) => map.serialize_entry(name, flag)?,
                SettingValue::Shapes(shapes) => map.serialize_entry(name, shapes)?,
                SettingValue::Path(path) => map.serialize_entry(name, path)?,
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ShapeSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SourceVisitor)
    }
}

struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = ShapeSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a shape source such as {name: llama}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ShapeSource, A::Error> {
        let mut generator = None;
        let mut given: Vec<(&'static str, SettingValue)> = Vec::new();
        while let Some(key) = map.next_key_seed(KeySeed { generator, previous: &given })? {
            match key {
                SourceKey::Name => generator = Some(map.next_value_seed(GeneratorSeed)?),
                SourceKey::Parameter(parameter) => given.push((parameter.name, map.next_value_seed(parameter)?)),
            }
        }
        let generator = generator.ok_or_else(|| ShapeError::NoGenerator { known: registry::names() });
        generator.and_then(|generator| ShapeSource::build(generator, given)).map_err(Error::custom)
    }
}

/// Key of a source: the generator's name or one of its parameters.
enum SourceKey {
    Name,
    Parameter(&'static Parameter),
}

struct KeySeed<'a> {
    /// `None` until `name` has been read; keys may come in any order.
    generator: Option<&'static Generator>,
    previous: &'a [(&'static str, SettingValue)],
}

impl KeySeed<'_> {
    fn find(&self, key: &str) -> Result<SourceKey, ShapeError> {
        let twice = self.previous.iter().any(|(name, _)| *name == key) || key == "name" && self.generator.is_some();
        match (key, self.generator) {
            _ if twice => Err(ShapeError::DuplicateName { name: key.to_owned() }),
            ("name", _) => Ok(SourceKey::Name),
            (_, Some(generator)) => generator.parameter(key).map(SourceKey::Parameter),
            (_, None) => registry::find_parameter(key).map(SourceKey::Parameter),
        }
    }
}

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = SourceKey;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<SourceKey, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeySeed<'_> {
    type Value = SourceKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("name or a parameter of the generator")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<SourceKey, E> {
        self.find(key).map_err(E::custom)
    }
}

struct GeneratorSeed;

impl<'de> DeserializeSeed<'de> for GeneratorSeed {
    type Value = &'static Generator;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for GeneratorSeed {
    type Value = &'static Generator;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a shape generator, one of {}", registry::names().join(", "))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        registry::find(name).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for &'static Parameter {
    type Value = SettingValue;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<SettingValue, D::Error> {
        match self.kind {
            ParameterKind::Power { .. } => self.power().deserialize(deserializer).map(SettingValue::Power),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for &'static Parameter {
    type Value = SettingValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {}", self.name, self.kind.expects())
    }

    fn visit_str<E: Error>(self, found: &str) -> Result<SettingValue, E> {
        match self.kind {
            ParameterKind::Path => Ok(SettingValue::Path(PathBuf::from(found))),
            _ => Err(E::invalid_type(serde::de::Unexpected::Str(found), &self)),
        }
    }

    fn visit_bool<E: Error>(self, found: bool) -> Result<SettingValue, E> {
        match self.kind {
            ParameterKind::Flag { .. } => Ok(SettingValue::Flag(found)),
            _ => Err(E::invalid_type(serde::de::Unexpected::Bool(found), &self)),
        }
    }

    /// Reads one size as a list with one element.
    fn visit_u64<E: Error>(self, found: u64) -> Result<SettingValue, E> {
        match self.kind {
            ParameterKind::Sizes { .. } => {
                size_bounds(self.name).check(found).map(|size| SettingValue::Sizes(vec![size])).map_err(E::custom)
            }
            _ => Err(E::invalid_type(serde::de::Unexpected::Unsigned(found), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<SettingValue, A::Error> {
        let value = match self.kind {
            ParameterKind::Sizes { .. } => SettingValue::Sizes(read_list(seq, size_bounds(self.name))?),
            ParameterKind::Names { what, known } => SettingValue::Names(read_list(seq, KnownNameSeed { what, known })?),
            ParameterKind::Shapes => SettingValue::Shapes(read_list(seq, PhantomData)?),
            ParameterKind::Power { .. } | ParameterKind::Flag { .. } | ParameterKind::Path => {
                return Err(Error::invalid_type(serde::de::Unexpected::Seq, &self));
            }
        };
        self.check(&value).map_err(Error::custom)?;
        Ok(value)
    }
}

/// Reads all elements of a list by one seed.
pub(crate) fn read_list<'de, A: SeqAccess<'de>, S: DeserializeSeed<'de> + Copy>(
    mut list: A,
    seed: S,
) -> Result<Vec<S::Value>, A::Error> {
    let mut elements = Vec::new();
    while let Some(element) = list.next_element_seed(seed)? {
        elements.push(element);
    }
    Ok(elements)
}

#[derive(Clone, Copy)]
struct KnownNameSeed {
    what: &'static str,
    known: &'static [&'static str],
}

impl<'de> DeserializeSeed<'de> for KnownNameSeed {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KnownNameSeed {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {}, one of {}", self.what, self.known.join(", "))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<String, E> {
        check_known(self.what, self.known, name).map_err(E::custom)?;
        Ok(name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MAX_POWER, MAX_SIZE};
    use proptest::prelude::*;
    use proptest::sample::subsequence;

    /// Error of a list of sources: begins with the position in the list and ends with line and column.
    fn error_of(yaml: &str) -> String {
        let error = serde_yaml::from_str::<Vec<ShapeSource>>(yaml).unwrap_err().to_string();
        // serde_yaml formats a top-level list as `.[0]`, and a nested one as `key[0]`.
        error.trim_start_matches('.').to_owned()
    }

    #[test]
    fn errors_report_line_and_column() {
        let unknown = |what, found: &str, known| ShapeError::Unknown { what, found: found.into(), known };
        let unknown_parameter =
            |generator, found: &str, takes| ShapeError::UnknownParameter { generator, found: found.into(), takes };
        let size = |axis, found: &str| size_bounds(axis).reject(found);
        let power = |found: &str| ShapeError::Number { name: "max_power".into(), found: found.into(), from: 0, to: 20 };
        let names = crate::registry::names;
        let parameters = crate::registry::find_parameter("").map(|parameter| parameter.name);
        let Err(ShapeError::UnknownParameter { takes: all, .. }) = parameters else { panic!("{parameters:?}") };
        let models = vec!["llama3_8b", "llama3_70b", "qwen3_32b", "gemma3_27b", "deepseek_v3"];
        let Err(missing) = "custom".parse::<ShapeSource>() else { panic!("custom needs shapes") };
        for (yaml, place, cause, position) in [
            ("- name: llama\n- name: pow3\n", "[1].name", unknown("shape generator", "pow3", names()), (2, 9)),
            (
                "- name: custom\n  shapes:\n    - [1, 2, 3]\n    - [1024, 1024]\n",
                "[0].shapes[1]",
                ShapeError::Arity { found: 2 },
                (4, 7),
            ),
            ("- {name: custom, shapes: [[1, 2, 3, 4]]}", "[0].shapes[0]", ShapeError::Arity { found: 4 }, (1, 27)),
            (
                "- name: custom\n  shapes:\n    - [1, 2, 3]\n    - [16, 0, 32]\n",
                "[0].shapes[1][1]",
                size("k", "0"),
                (4, 12),
            ),
            ("- name: custom\n  shapes: [[16, 8, -3]]\n", "[0].shapes[0][2]", size("n", "-3"), (2, 20)),
            ("- name: custom\n  shapes: [[1.5, 8, 3]]\n", "[0].shapes[0][0]", size("m", "1.5"), (2, 13)),
            ("- name: custom\n  shapes: [[1, \"8\", 3]]\n", "[0].shapes[0][1]", size("k", "\"8\""), (2, 16)),
            (
                "- name: custom\n  shapes: [[1, 8, 99999999999999999999]]\n",
                "[0].shapes[0][2]",
                size("n", "99999999999999999999"),
                (2, 19),
            ),
            (
                "- name: pow2\n  min_powr: 3\n",
                "[0]",
                unknown_parameter("pow2", "min_powr", vec!["min_power", "max_power"]),
                (2, 3),
            ),
            ("- name: llama\n  m: 3\n", "[0]", unknown_parameter("llama", "m", vec![]), (2, 3)),
            ("- min_powr: 3\n  name: pow2\n", "[0]", unknown_parameter("a shape source", "min_powr", all), (1, 3)),
            (
                "- name: pow2\n  max_power: 5\n",
                "[0]",
                ShapeError::PowersReversed { generator: "pow2", min: 10, max: 5 },
                (1, 3),
            ),
            (
                "- name: pow2\n  max_power: 5\n  max_power: 6\n",
                "[0]",
                ShapeError::DuplicateName { name: "max_power".into() },
                (3, 3),
            ),
            ("- name: pow2\n  max_power: -1\n", "[0].max_power", power("-1"), (2, 14)),
            ("- name: pow2\n  max_power: [1]\n", "[0].max_power", power("a list"), (2, 14)),
            ("- name: custom\n", "[0]", missing, (1, 3)),
            ("- {name: model, config: a, tp: 0}\n", "[0].tp", size("tp", "0"), (1, 32)),
            ("- name: custom\n  shapes: []\n", "[0].shapes", ShapeError::EmptyList { name: "shapes".into() }, (2, 11)),
            (
                "- name: decode\n  models: [llama3_8b, qwen_32b]\n",
                "[0].models[1]",
                unknown("model of decode", "qwen_32b", models),
                (2, 23),
            ),
            (
                "- name: decode\n  m: [1, 1]\n",
                "[0].m",
                ShapeError::DuplicateEntry { name: "m", value: "1".into() },
                (2, 6),
            ),
            ("- {max_power: 3}\n", "[0]", ShapeError::NoGenerator { known: names() }, (1, 3)),
        ] {
            let (line, column) = position;
            assert_eq!(error_of(yaml), format!("{place}: {cause} at line {line} column {column}"), "{yaml}");
        }
        for (yaml, place, position) in [
            ("- name: custom\n  shapes: 8\n", "[0].shapes: ", " at line 2 column 11"),
            ("- llama\n", "[0]: ", " at line 1 column 3"),
            ("- {name: model, fused: 1}\n", "[0].fused: ", " at line 1 column 24"),
            ("- {name: model, config: true}\n", "[0].config: ", " at line 1 column 25"),
        ] {
            let error = error_of(yaml);
            assert!(error.starts_with(place) && error.ends_with(position), "{error}");
        }
    }

    #[test]
    fn key_order_is_free() {
        let sorted: ShapeSource = serde_yaml::from_str("{max_power: 12, min_power: 11, name: pow2}").unwrap();
        let usual: ShapeSource = serde_yaml::from_str("{name: pow2, min_power: 11, max_power: 12}").unwrap();
        assert_eq!(sorted, usual);
        assert_eq!(serde_json::to_string(&sorted).unwrap(), r#"{"name":"pow2","min_power":11,"max_power":12}"#);
    }

    fn sources() -> impl Strategy<Value = ShapeSource> {
        // At most 2^20 per axis, so that the operations always fit 64 bits.
        let shape = (1..1u64 << 20, 1..1u64 << 20, 1..1u64 << 20).prop_map(|(m, k, n)| Shape::new(m, k, n).unwrap());
        let powers =
            (prop::sample::select(vec!["pow2", "pow2_extended", "small_sweep", "sweep"]), 0..=MAX_POWER, 0..=MAX_POWER)
                .prop_map(|(name, a, b)| {
                    ShapeSource::new(
                        name,
                        [("max_power", SettingValue::Power(a.max(b))), ("min_power", SettingValue::Power(a.min(b)))],
                    )
                });
        let models = subsequence(vec!["llama3_8b", "qwen3_32b", "deepseek_v3"], 1..=3);
        let rows = prop::collection::btree_set(1..=MAX_SIZE, 1..8);
        prop_oneof![
            prop::collection::vec(shape, 1..8)
                .prop_map(|shapes| ShapeSource::new("custom", [("shapes", SettingValue::Shapes(shapes))])),
            powers,
            (models, rows).prop_map(|(models, rows)| {
                let models = models.into_iter().map(String::from).collect();
                ShapeSource::new(
                    "decode",
                    [("models", SettingValue::Names(models)), ("m", SettingValue::Sizes(rows.into_iter().collect()))],
                )
            }),
            "[a-z]{1,8}\\.csv".prop_map(|path| ShapeSource::new("csv", [("path", SettingValue::Path(path.into()))])),
            ("[a-z]{1,8}\\.json", any::<bool>()).prop_map(|(path, fused)| {
                let config = SettingValue::Path(path.into());
                ShapeSource::new("model", [("config", config), ("fused", SettingValue::Flag(fused))])
            }),
            Just(ShapeSource::new("llama", [])),
        ]
        .prop_map(Result::unwrap)
    }

    proptest! {
        #[test]
        fn a_source_is_written_as_it_is_read(source in sources()) {
            let yaml = serde_yaml::to_string(&source).unwrap();
            prop_assert_eq!(&serde_yaml::from_str::<ShapeSource>(&yaml).unwrap(), &source);
            let json = serde_json::to_string(&source).unwrap();
            prop_assert_eq!(&serde_json::from_str::<ShapeSource>(&json).unwrap(), &source);
            // A JSON value has sorted keys.
            let value = serde_json::to_value(&source).unwrap();
            prop_assert_eq!(serde_json::from_value::<ShapeSource>(value).unwrap(), source);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[a-z0-9_:,{}\\[\\] .\\-\n]{0,60}") {
            let _ = serde_yaml::from_str::<ShapeSource>(&text);
            let _ = serde_yaml::from_str::<ShapeSource>(&format!("name: custom\nshapes: {text}"));
        }
    }
}
