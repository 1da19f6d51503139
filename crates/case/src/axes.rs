//! Sizes of one case: axis names and values, in order.

use crate::Name;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Axis names and values in order, without duplicates; in JSON `{"batch": 8, "sequence": 2048}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Axes(Vec<(Name, u64)>);

/// Error: two axes have one name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DuplicateAxis {
    /// Duplicate name.
    pub name: String,
}

impl fmt::Display for DuplicateAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is given twice: keep one", self.name)
    }
}

impl std::error::Error for DuplicateAxis {}

impl Axes {
    /// Creates axes from pairs in the given order; a duplicate name is an error.
    pub fn new<N: Into<Cow<'static, str>>>(pairs: impl IntoIterator<Item = (N, u64)>) -> Result<Self, DuplicateAxis> {
        let mut axes = Self::default();
        for (name, value) in pairs {
            let name = name.into();
            if axes.get(&name).is_some() {
                return Err(DuplicateAxis { name: name.into_owned() });
            }
            axes.0.push((Name::from(name), value));
        }
        // Long runs hold many axes in memory.
        axes.0.shrink_to_fit();
        Ok(axes)
    }

    /// Value of an axis.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.iter().find(|(axis, _)| *axis == name).map(|(_, value)| value)
    }

    /// Iterates over names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

impl<N: Into<Cow<'static, str>>> FromIterator<(N, u64)> for Axes {
    /// A duplicate name keeps its first position and takes the last value.
    fn from_iter<I: IntoIterator<Item = (N, u64)>>(pairs: I) -> Self {
        let mut axes = Self::default();
        for (name, value) in pairs {
            let name = Name::from(name.into());
            match axes.0.iter_mut().find(|(known, _)| *known == name) {
                Some((_, old)) => *old = value,
                None => axes.0.push((name, value)),
            }
        }
        axes
    }
}

impl<N: Into<Cow<'static, str>>, const AXES: usize> From<[(N, u64); AXES]> for Axes {
    fn from(pairs: [(N, u64); AXES]) -> Self {
        pairs.into_iter().collect()
    }
}

/// Formats shapes as `batch8-sequence2048`.
impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.iter().map(|(name, value)| format!("{name}{value}")).collect();
        f.pad(&parts.join("-"))
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

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Axes {
    fn schema_name() -> Cow<'static, str> {
        "Axes".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
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
    fn json_preserves_axis_order() {
        let json = r#"{"sequence":2048,"batch":8}"#;
        let axes: Axes = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&axes).unwrap(), json);
        assert_eq!(axes.to_string(), "sequence2048-batch8");
        assert_eq!((axes.get("batch"), axes.get("heads")), (Some(8), None));
        let twice = DuplicateAxis { name: "batch".into() };
        assert_eq!(Axes::new([("batch", 8), ("batch", 9)]).as_ref(), Err(&twice));
        let error = serde_json::from_str::<Axes>(r#"{"batch":8,"batch":9}"#).unwrap_err().to_string();
        assert!(error.starts_with(&twice.to_string()), "{error}");
    }
}
