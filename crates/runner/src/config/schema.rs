//! The JSON Schema that editors check configuration files with.

use super::File;

/// The schema of a configuration file, pretty-printed.
pub fn schema() -> String {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(File)).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_schema_is_the_one_of_the_types() {
        let committed = include_str!("../../../../configs/calorimeter.schema.json");
        assert!(committed == super::schema(), "run `cargo run -- schema > configs/calorimeter.schema.json`");
    }
}
