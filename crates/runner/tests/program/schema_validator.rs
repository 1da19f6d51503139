//! Validator for the JSON Schema keywords that our schema uses.

use regex::Regex;
use serde_json::{Map, Value};

/// Keywords without effect on validation.
const ANNOTATIONS: [&str; 9] =
    ["$schema", "$defs", "title", "description", "default", "examples", "format", "then", "writeOnly"];

/// Validates a value. Panics on unknown keywords.
pub(crate) fn accepts(root: &Value, value: &Value) -> bool {
    matches_schema(root, root, value)
}

fn matches_schema(root: &Value, schema: &Value, value: &Value) -> bool {
    match schema {
        Value::Bool(answer) => *answer,
        Value::Object(keywords) => keywords.iter().all(|(keyword, wanted)| {
            ANNOTATIONS.contains(&keyword.as_str()) || matches_keyword(root, keywords, keyword, wanted, value)
        }),
        _ => panic!("no schema: {schema}"),
    }
}

fn matches_keyword(root: &Value, schema: &Map<String, Value>, keyword: &str, wanted: &Value, value: &Value) -> bool {
    let all = |schemas: &Value| -> Vec<bool> {
        schemas.as_array().unwrap().iter().map(|schema| matches_schema(root, schema, value)).collect()
    };
    match keyword {
        "$ref" => {
            let pointer = wanted.as_str().unwrap().strip_prefix('#').unwrap();
            matches_schema(root, root.pointer(pointer).unwrap(), value)
        }
        "type" => match wanted {
            Value::Array(types) => types.iter().any(|wanted| has_type(wanted, value)),
            one => has_type(one, value),
        },
        "enum" => wanted.as_array().unwrap().contains(value),
        "const" => wanted == value,
        "pattern" => value.as_str().is_none_or(|text| Regex::new(wanted.as_str().unwrap()).unwrap().is_match(text)),
        "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()),
        "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= wanted.as_u64().unwrap()),
        "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= wanted.as_u64().unwrap()),
        "uniqueItems" => value
            .as_array()
            .is_none_or(|items| items.iter().enumerate().all(|(index, item)| !items[..index].contains(item))),
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| matches_schema(root, wanted, item))),
        "required" => value.as_object().is_none_or(|object| {
            wanted.as_array().unwrap().iter().all(|key| object.contains_key(key.as_str().unwrap()))
        }),
        "properties" => value.as_object().is_none_or(|object| {
            object.iter().all(|(key, value)| wanted.get(key).is_none_or(|schema| matches_schema(root, schema, value)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|object| {
            let declared = schema.get("properties").and_then(Value::as_object);
            let others = object.iter().filter(|(key, _)| declared.is_none_or(|declared| !declared.contains_key(*key)));
            others.into_iter().all(|(_, value)| matches_schema(root, wanted, value))
        }),
        "anyOf" => all(wanted).contains(&true),
        "oneOf" => all(wanted).into_iter().filter(|holds| *holds).count() == 1,
        "not" => !matches_schema(root, wanted, value),
        "if" => {
            let branch = if matches_schema(root, wanted, value) { "then" } else { "else" };
            schema.get(branch).is_none_or(|schema| matches_schema(root, schema, value))
        }
        "else" => true,
        _ => panic!("the keyword {keyword} is not known here"),
    }
}

fn has_type(wanted: &Value, value: &Value) -> bool {
    match wanted.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("the type {other} is not known here"),
    }
}
