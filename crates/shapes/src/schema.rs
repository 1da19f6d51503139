//! JSON Schemas for editor completion, derived from the generators' parameters.

use crate::parameter::{MAX_POWER, Parameter, ParameterKind};
use crate::{Generator, MAX_SIZE, Shape, ShapeSource, SizeValues, ValueRange, all_generators};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::collections::BTreeMap;

impl JsonSchema for Shape {
    fn schema_name() -> Cow<'static, str> {
        "Shape".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A shape [m, k, n].",
            "type": "array",
            "items": {"type": "integer", "minimum": 1, "maximum": MAX_SIZE},
            "minItems": 3,
            "maxItems": 3,
        })
    }
}

impl JsonSchema for ShapeSource {
    fn schema_name() -> Cow<'static, str> {
        "ShapeSource".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let generators: Vec<Schema> = all_generators().map(|generator| generator_schema(generator, schemas)).collect();
        json_schema!({"description": "Source of shapes.", "oneOf": generators})
    }
}

fn generator_schema(generator: &Generator, schemas: &mut SchemaGenerator) -> Schema {
    let name = json_schema!({"const": generator.name, "description": generator.about});
    let parameters = generator.parameters.iter().map(|p| (p.name, parameter_schema(p, schemas)));
    let properties: BTreeMap<&str, Schema> = parameters.chain([("name", name)]).collect();
    let without_default = generator.parameters.iter().filter(|p| p.kind.is_required()).map(|p| p.name);
    let required: Vec<&str> = ["name"].into_iter().chain(without_default).collect();
    json_schema!({
        "title": generator.name,
        "description": generator.about,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn parameter_schema(parameter: &Parameter, schemas: &mut SchemaGenerator) -> Schema {
    let about = parameter.about;
    match parameter.kind {
        ParameterKind::Power { default } => json_schema!({
            "description": about, "type": "integer", "minimum": 0, "maximum": MAX_POWER, "default": default,
        }),
        ParameterKind::Sizes { default } => {
            let size = json_schema!({"type": "integer", "minimum": 1, "maximum": MAX_SIZE});
            json_schema!({
                "description": about,
                "anyOf": [size, {"type": "array", "items": size, "minItems": 1, "uniqueItems": true}],
                "default": default,
            })
        }
        ParameterKind::Flag { default } => {
            json_schema!({"description": about, "type": "boolean", "default": default})
        }
        ParameterKind::Names { known, .. } => json_schema!({
            "description": about,
            "type": "array",
            "items": {"enum": known},
            "minItems": 1,
            "uniqueItems": true,
            "default": known,
        }),
        ParameterKind::Shapes => {
            let shape = schemas.subschema_for::<Shape>();
            json_schema!({"description": about, "type": "array", "items": shape, "minItems": 1})
        }
        ParameterKind::Path => json_schema!({"description": about, "type": "string"}),
    }
}

impl JsonSchema for ValueRange {
    fn schema_name() -> Cow<'static, str> {
        "Range".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let step = |name: &str, from: u64, about: &str| {
            json_schema!({
                "type": "object",
                "properties": {
                    "start": {"type": "integer", "minimum": 0, "description": "The first value."},
                    "end": {"type": "integer", "minimum": 0, "description": "The last value allowed, included."},
                    name: {"type": "integer", "minimum": from, "description": about},
                },
                "required": ["start", "end", name],
                "additionalProperties": false,
            })
        };
        let steps = [
            step("multiplier", 2, "Factor between successive values."),
            step("increment", 1, "Difference between successive values."),
            step("increase_by", 1, "Alias of increment."),
        ];
        json_schema!({"description": "Values from start to end.", "oneOf": steps})
    }
}

impl JsonSchema for SizeValues {
    fn schema_name() -> Cow<'static, str> {
        "Values".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let value = json_schema!({"type": "integer", "minimum": 0});
        let range = schemas.subschema_for::<ValueRange>();
        json_schema!({
            "description": "The values of an axis: one, a list, or a range.",
            "anyOf": [value, {"type": "array", "items": value, "minItems": 1}, range],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn schema_covers_generators_and_parameters() {
        let schema = serde_json::to_value(schemars::schema_for!(ShapeSource)).unwrap();
        let branches = schema["oneOf"].as_array().unwrap();
        assert_eq!(branches.len(), all_generators().count());
        for (branch, generator) in branches.iter().zip(all_generators()) {
            assert_eq!(branch["properties"]["name"]["const"], generator.name);
            assert_eq!(branch["additionalProperties"], false);
            for parameter in generator.parameters {
                let property = &branch["properties"][parameter.name];
                assert_eq!(property["description"], parameter.about);
                assert_eq!(property.get("default").is_some(), !parameter.kind.is_required(), "{}", parameter.name);
                let required = branch["required"].as_array().unwrap();
                assert_eq!(required.contains(&Value::from(parameter.name)), parameter.kind.is_required());
            }
        }
        assert_eq!(schema["$defs"]["Shape"]["minItems"], 3);
    }

    #[test]
    fn range_schema_requires_one_step() {
        let schema = serde_json::to_value(schemars::schema_for!(SizeValues)).unwrap();
        let steps = schema["$defs"]["Range"]["oneOf"].as_array().unwrap();
        let required: Vec<&Value> = steps.iter().map(|step| &step["required"][2]).collect();
        assert_eq!(required, [&json!("multiplier"), &json!("increment"), &json!("increase_by")]);
    }
}
