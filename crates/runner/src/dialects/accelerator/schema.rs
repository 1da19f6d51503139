//! JSON Schema of accelerator-microbenchmarks files.

use super::unsupported::register;
use super::v2;
use crate::dialects::names::OperatorName;
use calorimeter_recipes::Element;
use schemars::{Schema, SchemaGenerator, json_schema};

/// Schema of a file of either version.
pub(crate) fn schema(schemas: &mut SchemaGenerator) -> Schema {
    let unnamed = json_schema!({ "properties": { "benchmarks": { "items": { "not": { "required": ["name"] } } } } });
    json_schema!({
        "if": { "anyOf": [{ "required": ["global"] }, { "required": ["hardware"] }, { "not": unnamed }] },
        "then": v2::schema(schemas),
        "else": schema_of_version_1(schemas),
    })
}

/// Schema of a file with `benchmark_name`. Keys that only concern other programs are allowed.
fn schema_of_version_1(schemas: &mut SchemaGenerator) -> Schema {
    register();
    let (operator, element) = (schemas.subschema_for::<OperatorName>(), schemas.subschema_for::<Element>());
    let number = json_schema!({ "type": "integer", "minimum": 0 });
    let scalar = json_schema!({ "type": ["integer", "number", "string", "boolean"], "minimum": 0 });
    let element_or_reference = json_schema!({ "anyOf": [element, { "type": "string", "pattern": "^SAME_AS_" }] });
    let range = json_schema!({
        "type": "object",
        "properties": { "start": number, "end": number, "multiplier": nullable(&number), "increase_by": nullable(&number) },
        "required": ["start", "end"],
        "additionalProperties": false,
    });
    let swept =
        |one: &Schema| json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }, range] });
    let elements = ["dtype", "in_dtype_str", "quant_dtype", "out_dtype_str"];
    let literal = json_schema!({
        "type": "object",
        "properties": properties(&elements.map(|name| (name, element_or_reference.clone()))),
        "additionalProperties": scalar,
    });
    let sweep = json_schema!({
        "type": "object",
        "properties": properties(&elements.map(|name| (name, swept(&element_or_reference)))),
        "additionalProperties": swept(&scalar),
    });
    let text = json_schema!({ "type": ["string", "null"] });
    let sets = |one: Schema| json_schema!({ "type": ["array", "null"], "items": one });
    let benchmark = json_schema!({
        "description": "Benchmark: an operator with parameters and sweeps.",
        "type": "object",
        "properties": {
            "benchmark_name": operator,
            "benchmark_params": sets(literal),
            "benchmark_sweep_params": sets(sweep),
            "num_runs": nullable(&number),
            "csv_path": text,
            "trace_dir": text,
            "xlml_metrics_dir": text,
        },
        "required": ["benchmark_name"],
    });
    json_schema!({
        "description": "File of accelerator-microbenchmarks version 1.",
        "type": "object",
        "properties": { "benchmarks": { "type": "array", "items": benchmark, "minItems": 1 } },
        "required": ["benchmarks"],
    })
}

fn nullable(schema: &Schema) -> Schema {
    json_schema!({ "anyOf": [schema, { "type": "null" }] })
}

fn properties(named: &[(&str, Schema)]) -> serde_json::Map<String, serde_json::Value> {
    named.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone().to_value())).collect()
}
