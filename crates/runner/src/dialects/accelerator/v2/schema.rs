//! JSON Schema of version 2 files.

use super::benchmarks::{BENCHMARKS, BenchmarkName};
use super::parameters::{GENERAL, NamedParameter, ParameterDefault};
use super::presets::PresetName;
use calorimeter_recipes::Element;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

/// Name of the definition of a range.
const RANGE: &str = "SweepRange";

/// Schema of a file with `name` in its benchmarks. The schema accepts the parameters of all benchmarks in every
/// benchmark.
pub(crate) fn schema(schemas: &mut SchemaGenerator) -> Schema {
    let (name, model) = (schemas.subschema_for::<BenchmarkName>(), schemas.subschema_for::<PresetName>());
    let number = json!({ "type": "integer", "minimum": 0 });
    let step = json!({ "type": ["integer", "null"], "minimum": 0 });
    let range = json!({
        "type": "object",
        "properties": { "start": number, "end": number, "multiplier": step, "increase_by": step },
        "required": ["start", "end"],
        "additionalProperties": false,
    });
    schemas.definitions_mut().insert(RANGE.to_owned(), range);
    let own = BENCHMARKS.iter().flat_map(|benchmark| benchmark.parameters);
    let parameters: Vec<&NamedParameter> = GENERAL.iter().chain(own).collect();
    let mut properties = |wrap: fn(Schema) -> Schema| -> Map<String, Value> {
        let value =
            |(name, default): &&NamedParameter| ((*name).to_owned(), wrap(value_schema(*default, schemas)).into());
        parameters.iter().map(value).collect()
    };
    let (single, swept) = (properties(|one| one), properties(sweep_schema));
    let mut benchmark = single.clone();
    benchmark.extend([
        ("name".to_owned(), name.into()),
        ("model".to_owned(), json!({ "anyOf": [model, { "type": "null" }] })),
        ("csv_shapes".to_owned(), json!({ "type": ["string", "null"] })),
        ("sweep".to_owned(), json!({ "type": ["object", "null"], "properties": swept, "additionalProperties": false })),
    ]);
    let benchmark = json!({
        "description": "Benchmark with its parameters.",
        "type": "object",
        "properties": benchmark,
        "required": ["name"],
        "additionalProperties": false,
    });
    let peak =
        json!({ "anyOf": [{ "type": "number" }, { "type": "object", "additionalProperties": { "type": "number" } }] });
    let hardware = json!({
        "type": ["object", "null"],
        "properties": { "peak_tflops": peak, "tflops": peak, "hbm_bw": peak },
        "additionalProperties": false,
    });
    json_schema!({
        "description": "File of accelerator-microbenchmarks version 2.",
        "type": "object",
        "properties": {
            "global": { "type": ["object", "null"], "properties": single, "additionalProperties": false },
            "hardware": hardware,
            "benchmarks": { "type": "array", "items": benchmark, "minItems": 1 },
        },
        "required": ["benchmarks"],
        "additionalProperties": false,
    })
}

fn value_schema(default: ParameterDefault, schemas: &mut SchemaGenerator) -> Schema {
    match default {
        ParameterDefault::Integer(_) => json_schema!({ "type": "integer", "minimum": 0 }),
        ParameterDefault::Number(_) => json_schema!({ "type": "number" }),
        ParameterDefault::Flag(_) => json_schema!({ "type": "boolean" }),
        ParameterDefault::Dtype(_) => schemas.subschema_for::<Element>(),
        ParameterDefault::Word(words) => json_schema!({ "enum": words }),
        ParameterDefault::Text(_) => json_schema!({ "type": ["string", "integer"] }),
    }
}

/// Schema of swept values: a single value, a list, or a range.
fn sweep_schema(one: Schema) -> Schema {
    let range = json!({ "$ref": format!("#/$defs/{RANGE}") });
    json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }, range] })
}
