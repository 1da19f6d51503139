//! Sizes of operators in configuration files: values per axis.

use calorimeter_shapes::{Axis, Grid, ShapeError, SizeValues};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::{borrow::Cow, fmt};

/// Values per axis, in file order. They stand for all combinations, last axis fastest.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct AxisValues(pub Vec<(String, SizeValues)>);

impl AxisValues {
    /// Grid of all combinations.
    pub(crate) fn grid(&self) -> Result<Grid, ShapeError> {
        Grid::product(self.0.iter().map(|(name, values)| Axis::new(name.clone(), values.clone())))
    }
}

impl Serialize for AxisValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, values)| (name, Vec::<u64>::from(values.clone()))))
    }
}

impl<'de> Deserialize<'de> for AxisValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AxesVisitor;
        impl<'de> Visitor<'de> for AxesVisitor {
            type Value = AxisValues;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("axes with their values, such as {batch: 8, sequence: [256, 512]}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AxisValues, A::Error> {
                let mut axes = Vec::new();
                while let Some(axis) = map.next_entry()? {
                    axes.push(axis);
                }
                Ok(AxisValues(axes))
            }
        }
        deserializer.deserialize_map(AxesVisitor)
    }
}

impl JsonSchema for AxisValues {
    fn schema_name() -> Cow<'static, str> {
        "AxisValues".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let values = schemas.subschema_for::<SizeValues>();
        json_schema!({
            "description": "Values per axis of an operator, in all combinations.",
            "type": "object",
            "additionalProperties": values,
        })
    }
}

/// Schema of the values that [`some_grids`] accepts.
pub(super) fn some_grids_schema(schemas: &mut SchemaGenerator) -> Schema {
    let (one, many) = (schemas.subschema_for::<AxisValues>(), schemas.subschema_for::<Vec<AxisValues>>());
    json_schema!({ "anyOf": [one, many] })
}

/// Deserializes one map of axes, or a list of them.
pub(super) fn some_grids<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<AxisValues>>, D::Error> {
    struct GridsVisitor;
    impl<'de> Visitor<'de> for GridsVisitor {
        type Value = Vec<AxisValues>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("axes with their values, or a list of such maps")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, grids: A) -> Result<Vec<AxisValues>, A::Error> {
            Vec::deserialize(serde::de::value::SeqAccessDeserializer::new(grids))
        }

        fn visit_map<A: MapAccess<'de>>(self, grid: A) -> Result<Vec<AxisValues>, A::Error> {
            AxisValues::deserialize(serde::de::value::MapAccessDeserializer::new(grid)).map(|grid| vec![grid])
        }
    }
    deserializer.deserialize_any(GridsVisitor).map(Some)
}
