//! Entry of a list of shapes: a source, or the sizes of a shape.

use crate::parse::read_list;
use crate::shape::size_bounds;
use crate::{MAX_SIZE, ShapeError, ShapeSource};
use calorimeter_case::Axes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Entry of a list of shapes; in a configuration file `{name: llama}` or `[1, 2048, 8192]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ShapeEntry {
    /// Source of shapes.
    Source(ShapeSource),
    /// Sizes of one shape, in the order of its axes.
    Sizes(Vec<u64>),
}

impl ShapeEntry {
    /// Assigns sizes to axes.
    ///
    /// ```
    /// use calorimeter_shapes::{ShapeEntry, ShapeError};
    ///
    /// assert_eq!(ShapeEntry::axes(&[1, 2048, 8192], &["m", "k", "n"])?.to_string(), "m1-k2048-n8192");
    /// assert!(matches!(ShapeEntry::axes(&[2048], &["m", "k", "n"]), Err(ShapeError::WrongLength { found: 1, .. })));
    /// # Ok::<(), ShapeError>(())
    /// ```
    pub fn axes(sizes: &[u64], names: &[&'static str]) -> Result<Axes, ShapeError> {
        if sizes.len() != names.len() {
            return Err(ShapeError::WrongLength { found: sizes.len(), axes: names.join(", ") });
        }
        let axes = names.iter().zip(sizes).map(|(name, size)| (*name, *size));
        Ok(Axes::new(axes).expect("axes of a model or operator have distinct names"))
    }
}

impl<'de> Deserialize<'de> for ShapeEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = ShapeEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a shape such as [1, 2048, 8192], or a shape source such as {name: llama}")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, sizes: A) -> Result<ShapeEntry, A::Error> {
        read_list(sizes, size_bounds(SIZE)).map(ShapeEntry::Sizes)
    }

    fn visit_map<A: MapAccess<'de>>(self, source: A) -> Result<ShapeEntry, A::Error> {
        ShapeSource::deserialize(MapAccessDeserializer::new(source)).map(ShapeEntry::Source)
    }
}

/// Name in errors of a size whose axis is not known yet.
const SIZE: &str = "a size";

impl JsonSchema for ShapeEntry {
    fn schema_name() -> Cow<'static, str> {
        "ShapeEntry".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let source = schemas.subschema_for::<ShapeSource>();
        let sizes = json_schema!({
            "description": "Sizes of one shape: [m, k, n], or one number for each axis of an operator.",
            "type": "array",
            "items": {"type": "integer", "minimum": 1, "maximum": MAX_SIZE},
            "minItems": 1,
        });
        json_schema!({ "description": "Sizes of a shape, or source of shapes.", "anyOf": [source, sizes] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_and_sizes_may_be_mixed() {
        let text = "[[1, 2048, 8192], {name: llama}, [16, 1024]]";
        let entries: Vec<ShapeEntry> = serde_yaml::from_str(text).unwrap();
        let llama = "llama".parse().unwrap();
        let expected =
            [ShapeEntry::Sizes(vec![1, 2048, 8192]), ShapeEntry::Source(llama), ShapeEntry::Sizes(vec![16, 1024])];
        assert_eq!(entries, expected);
        let written = serde_json::to_string(&entries).unwrap();
        assert_eq!(serde_json::from_str::<Vec<ShapeEntry>>(&written).unwrap(), entries);
    }

    #[test]
    fn invalid_sizes_are_refused_with_position() {
        for (text, found, column) in [("[[8, 0, 8]]", "0", 6), ("[[8, 8.5]]", "8.5", 6), ("[[8, [8]]]", "a list", 6)] {
            let error = serde_yaml::from_str::<Vec<ShapeEntry>>(text).unwrap_err();
            let location = error.location().unwrap();
            assert_eq!((location.line(), location.column()), (1, column), "{error}");
            assert!(error.to_string().contains(&size_bounds(SIZE).reject(found).to_string()), "{error}");
        }
    }
}
