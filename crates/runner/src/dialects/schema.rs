//! JSON Schema of configuration files, for editors. Accepts exactly the files that the program accepts, and any name of an
//! implementation.

mod spelling;

use super::accelerator;
use super::own::File;
use super::torchao::{ALIASES, RECIPES};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use spelling::pattern;

/// Returns the schema of configuration files, pretty-printed.
pub fn schema() -> String {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let accelerator = accelerator::schema(&mut generator);
    let own = generator.subschema_for::<File>();
    let mut definitions = Value::Object(generator.take_definitions(true));
    definitions["File"]["anyOf"] = json!([{ "required": ["models"] }, { "required": ["model_params"] }]);
    add_aliases(&mut definitions);
    let named =
        definitions.as_object_mut().into_iter().flatten().filter(|(name, _)| NAMED_TYPES.contains(&name.as_str()));
    named.for_each(|(name, definition)| restrict_to_names(definition, if name == "Recipe" { &RECIPES } else { &[] }));
    if let Some(Value::Array(names)) = definitions.pointer_mut("/Implementation/anyOf") {
        names.push(json!({ "title": "name that a Python source registers" }));
    }
    let models = json!({ "anyOf": [{ "required": ["models"] }, { "required": ["model_params"] }] });
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration file of calorimeter",
        "if": { "required": ["benchmarks"], "not": models },
        "then": accelerator,
        "else": own,
        "$defs": definitions,
    });
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// Duplicates each property under its alternative names. Skipped if the name exists, such as `precision` of `Timing`.
fn add_aliases(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                let twins: Map<String, Value> = ALIASES
                    .iter()
                    .filter(|(key, alias)| properties.contains_key(*key) && !properties.contains_key(*alias))
                    .map(|(key, alias)| ((*alias).to_owned(), properties[*key].clone()))
                    .collect();
                properties.extend(twins);
            }
            object.values_mut().for_each(add_aliases);
        }
        Value::Array(items) => items.iter_mut().for_each(add_aliases),
        _ => {}
    }
}

/// Types whose examples list all names or patterns of names.
const NAMED_TYPES: [&str; 5] = ["Recipe", "Sparsity", "NumberType", "Implementation", "Regime"];

/// Restricts a definition to the names in its examples, and to `others`.
fn restrict_to_names(definition: &mut Value, others: &[&str]) {
    let Some(Value::Array(names)) = definition.as_object_mut().and_then(|object| object.remove("examples")) else {
        return;
    };
    let names = names.iter().filter_map(Value::as_str);
    let (patterns, mut plain): (Vec<&str>, Vec<&str>) = names.partition(|name| name.contains(['{', '[']));
    plain.extend(others);
    let patterns = patterns.into_iter().map(|name| json!({ "pattern": pattern(name), "title": name }));
    definition["anyOf"] = [json!({ "enum": plain })].into_iter().chain(patterns).collect();
}

#[cfg(test)]
mod tests {
    #[test]
    fn committed_schema_is_current() {
        let committed = include_str!("../../../../configs/calorimeter.schema.json");
        assert!(committed == super::schema(), "run `cargo run -- schema > configs/calorimeter.schema.json`");
    }
}
