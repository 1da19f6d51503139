//! The sizes of one case: axis names and their values, in order.

use crate::{Shape, ShapeError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Axis names and their values in order, no name twice; in JSON `{"batch": 8, "sequence": 2048}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Axes(Vec<(Cow<'static, str>, u64)>);

impl Axes {
    /// The pairs in the order given; a name that comes twice is an error.
    pub fn new<N: Into<Cow<'static, str>>>(pairs: impl IntoIterator<Item = (N, u64)>) -> Result<Self, ShapeError> {
        let mut axes = Self::default();
        for (name, value) in pairs {
            let name = name.into();
            if axes.get(&name).is_some() {
                return Err(ShapeError::GivenTwice { name: name.into_owned() });
            }
            axes.0.push((name, value));
        }
        Ok(axes)
    }

    /// The names are known to differ.
    pub(crate) fn of_distinct(pairs: Vec<(Cow<'static, str>, u64)>) -> Self {
        Self(pairs)
    }

    /// The value of an axis.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.iter().find(|(axis, _)| *axis == name).map(|(_, value)| value)
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }
}

/// `batch8-sequence2048`, the way shapes are written.
impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.iter().map(|(name, value)| format!("{name}{value}")).collect();
        f.pad(&parts.join("-"))
    }
}

impl From<Shape> for Axes {
    fn from(shape: Shape) -> Self {
        Self(vec![("m".into(), shape.m()), ("k".into(), shape.k()), ("n".into(), shape.n())])
    }
}

/// The axes m, k and n; others are left to the caller.
impl TryFrom<&Axes> for Shape {
    type Error = ShapeError;

    fn try_from(axes: &Axes) -> Result<Self, ShapeError> {
        let size = |axis| axes.get(axis).ok_or_else(|| ShapeError::MissingAxis { axis, axes: axes.to_string() });
        Self::new(size("m")?, size("k")?, size("n")?)
    }
}

impl Serialize for Axes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Axes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AxesVisitor)
    }
}

struct AxesVisitor;

impl<'de> Visitor<'de> for AxesVisitor {
    type Value = Axes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("axis names with their values, such as {m: 1024, n: 512}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Axes, A::Error> {
        let mut pairs: Vec<(String, u64)> = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Axes::new(pairs).map_err(Error::custom)
    }
}

impl JsonSchema for Axes {
    fn schema_name() -> Cow<'static, str> {
        "Axes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Axis names with their values, in order.",
            "type": "object",
            "additionalProperties": {"type": "integer", "minimum": 0},
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_keep_their_order_in_json() {
        let json = r#"{"sequence":2048,"batch":8}"#;
        let axes: Axes = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&axes).unwrap(), json);
        assert_eq!(axes.to_string(), "sequence2048-batch8");
        assert_eq!((axes.get("batch"), axes.get("heads")), (Some(8), None));
        let error = serde_json::from_str::<Axes>(r#"{"batch":8,"batch":9}"#).unwrap_err().to_string();
        assert!(error.starts_with("batch is given twice: keep one"), "{error}");
    }

    #[test]
    fn a_shape_is_three_axes_and_back() {
        let shape = Shape::new(1, 2, 3).unwrap();
        let axes = Axes::from(shape);
        assert_eq!(axes.to_string(), shape.to_string());
        assert_eq!(Shape::try_from(&axes), Ok(shape));
        let two = Axes::new([("m", 1), ("k", 2)]).unwrap();
        assert_eq!(Shape::try_from(&two).unwrap_err().to_string(), "no axis n in \"m1-k2\": a shape needs m, k and n");
    }
}
