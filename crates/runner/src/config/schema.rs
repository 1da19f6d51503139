//! The JSON Schema that editors check configuration files with.

use super::File;
use serde_json::{Map, Value};

/// Keys with the names that torchao's files of some age give them; serde keeps these to itself.
const ALIASES: [(&str, &str); 11] = [
    ("mode", "benchmark_mode"),
    ("recipes", "quantization_config_recipe_names"),
    ("recipes", "quantizations"),
    ("sparsities", "sparsity_config_recipe_names"),
    ("models", "model_params"),
    ("shapes", "matrix_shapes"),
    ("dtype", "high_precision_dtype"),
    ("dtype", "precision"),
    ("model", "model_type"),
    ("torch_compile_mode", "compile"),
    ("increment", "increase_by"),
];

/// The schema of a configuration file, pretty-printed.
pub fn schema() -> String {
    let mut schema = schemars::schema_for!(File).to_value();
    add_aliases(&mut schema);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// Gives every property that has other names a twin under each of them. Timing has a `precision` of its own.
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

#[cfg(test)]
mod tests {
    #[test]
    fn every_key_of_torchaos_files_is_in_the_schema() {
        let schema = super::schema();
        for text in [
            include_str!("../../tests/fixtures/torchao/benchmark_config.L1.yml"),
            include_str!("../../tests/fixtures/torchao/benchmark_config.L8.yml"),
            include_str!("../../tests/fixtures/torchao/training_benchmark_config.yml"),
        ] {
            let lines =
                text.lines().map(|line| line.trim_start_matches([' ', '-'])).filter(|line| !line.starts_with('#'));
            for key in lines.filter_map(|line| line.split_once(':').map(|(key, _)| key)) {
                assert!(schema.contains(&format!("\"{key}\": ")), "{key}");
            }
        }
    }

    #[test]
    fn the_committed_schema_is_the_one_of_the_types() {
        let committed = include_str!("../../../../configs/calorimeter.schema.json");
        assert!(committed == super::schema(), "run `cargo run -- schema > configs/calorimeter.schema.json`");
    }
}
