//! `calorimeter docs`: generates sections of the book from the code, between markers in its pages.

use super::error::CliError;
use super::kernels;
use crate::Exit;
use crate::dialects::own::File;
use crate::dialects::schema;
use calorimeter_case::{Regime, WarningCode};
use calorimeter_sinks::{columns, log_line};
use serde_json::{Map, Value};
use std::fs;
use std::path::Path;

/// Generated section: page, name in its markers, and generator.
type GeneratedSection = (&'static str, &'static str, fn() -> String);

/// All generated sections. A new one needs a line here and a pair of markers in its page.
const SECTIONS: &[GeneratedSection] = &[
    ("outputs.md", "columns", columns::markdown),
    ("outputs.md", "warnings", WarningCode::markdown),
    ("method.md", "regimes", regimes),
    ("recipes.md", "kernels", kernels::markdown),
    ("config.md", "keys of a file", file_keys),
    ("config.md", "keys of an entry", entry_keys),
    ("config.md", "timing", || key_table("Timing")),
    ("config.md", "rules of the mock device", || key_table("Rule")),
    ("config.md", "faults", faults),
];

/// Updates the pages in a folder and reports the changed ones. With `check`, changes nothing and fails if a page is out
/// of date.
pub fn update_docs(dir: &Path, check: bool) -> Result<Exit, CliError> {
    if !cfg!(all(feature = "cuda", feature = "wgpu")) {
        let needs = "the table of layer kernels needs the features cuda and wgpu; build with `--features full`";
        return Err(CliError::Usage(needs.into()));
    }
    let mut pages: Vec<&str> = SECTIONS.iter().map(|(page, ..)| *page).collect();
    pages.dedup();
    for page in pages {
        let path = dir.join(page);
        let error_at = |error: &dyn std::fmt::Display| CliError::Usage(format!("{}: {error}", path.display()));
        let before = fs::read_to_string(&path).map_err(|error| error_at(&error))?;
        let after = with_generated_sections(page, &before).map_err(|error| error_at(&error))?;
        if before == after {
            continue;
        }
        if check {
            return Err(error_at(&"out of date; run `calorimeter docs`"));
        }
        fs::write(&path, after).map_err(|error| error_at(&error))?;
        log_line!("wrote {}", path.display());
    }
    Ok(Exit::Success)
}

/// Returns the page with its generated sections replaced.
fn with_generated_sections(page: &str, text: &str) -> Result<String, String> {
    let mut text = text.to_owned();
    for (_, name, generate) in SECTIONS.iter().filter(|(section_page, ..)| *section_page == page) {
        let [start, end] = [format!("<!-- from the code: {name} -->\n"), "<!-- end -->".to_owned()];
        let from = text.find(&start).ok_or_else(|| format!("missing {}", start.trim_end()))? + start.len();
        let length = text[from..].find(&end).ok_or_else(|| format!("missing {end} after {}", start.trim_end()))?;
        text.replace_range(from..from + length, &format!("\n{}\n", generate()));
    }
    Ok(text)
}

fn regimes() -> String {
    let row = |regime: Regime| format!("| `{regime}` | {} |\n", regime.description());
    format!("| regime | meaning |\n|---|---|\n{}", Regime::ALL.map(row).concat())
}

fn file_keys() -> String {
    let is_file_key = |key: &str| !is_entry_key(key);
    table(&plain_schema(), &definition(&aliased_schema(), "File"), is_file_key)
}

fn entry_keys() -> String {
    table(&definition(&plain_schema(), "ModelEntry"), &definition(&aliased_schema(), "ModelEntry"), |_| true)
}

fn key_table(name: &str) -> String {
    table(&definition(&plain_schema(), name), &definition(&aliased_schema(), name), |_| true)
}

fn faults() -> String {
    let faults = definition(&plain_schema(), "Fault");
    let row =
        |fault: &Value| format!("| `{}` | {} |\n", string_field(fault, "const"), string_field(fault, "description"));
    let rows = faults["oneOf"].as_array().into_iter().flatten().map(row);
    format!("| fault | effect |\n|---|---|\n{}", rows.collect::<String>())
}

/// JSON Schema without alternative key names.
fn plain_schema() -> Value {
    schemars::schema_for!(File).to_value()
}

fn aliased_schema() -> Value {
    serde_json::from_str(&schema()).unwrap_or_default()
}

fn definition(schema: &Value, name: &str) -> Value {
    schema["$defs"][name].clone()
}

fn properties(schema: &Value) -> Map<String, Value> {
    schema["properties"].as_object().cloned().unwrap_or_default()
}

/// True if a key at the top of a file is also a key of its entries.
fn is_entry_key(key: &str) -> bool {
    properties(&definition(&plain_schema(), "ModelEntry")).contains_key(key)
}

/// Table with one row per key: name, alternative names, type and meaning. Omits keys that are read but never written.
fn table(plain: &Value, aliased: &Value, is_listed: impl Fn(&str) -> bool) -> String {
    let (own, all) = (properties(plain), properties(aliased));
    let mut text = "| key | other names | type | meaning |\n|---|---|---|---|\n".to_owned();
    for (key, value) in own.iter().filter(|(key, value)| is_listed(key) && value["writeOnly"] != true) {
        let others = all.iter().filter(|(name, other)| !own.contains_key(*name) && *other == value);
        let others: Vec<String> = others.map(|(name, _)| format!("`{name}`")).collect();
        let default = match &value["default"] {
            Value::Null => String::new(),
            Value::Array(list) if list.is_empty() => String::new(),
            Value::String(word) if word.is_empty() => String::new(),
            Value::String(word) => format!(" ({word})"),
            other => format!(" ({other})"),
        };
        let meaning = self::string_field(value, "description");
        let meaning = meaning.trim_end_matches('.');
        text += &format!("| `{key}` | {} | {} | {meaning}{default} |\n", others.join(", "), type_text(value));
    }
    text
}

fn string_field<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Describes the type of a schema value.
fn type_text(value: &Value) -> String {
    if let Some(name) = value["$ref"].as_str() {
        return named_type_text(name.rsplit('/').next().unwrap_or(name));
    }
    if let Some(choices) = value["anyOf"].as_array() {
        let kinds: Vec<String> = choices.iter().filter(|choice| choice["type"] != "null").map(type_text).collect();
        return kinds.join(", or ");
    }
    let type_name = |word: &str| match word {
        "array" => format!("list: {}", type_text(&value["items"])),

        "string" => "text".to_owned(),
        "object" => "map".to_owned(),
        other => other.to_owned(),
    };
    match &value["type"] {
        Value::String(word) => type_name(word),
        Value::Array(words) => {
            let words = words.iter().filter_map(Value::as_str).filter(|&word| word != "null");
            words.map(type_name).collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

/// Describes a named type by its values if there are at most three, otherwise by its description.
fn named_type_text(name: &str) -> String {
    let definition = definition(&plain_schema(), name);
    let values = definition["oneOf"].as_array().into_iter().flatten();
    let values: Vec<String> = values.filter_map(|value| Some(format!("`{}`", value["const"].as_str()?))).collect();
    if (1..=3).contains(&values.len()) {
        return values.join(" or ");
    }
    let about = string_field(&definition, "description").trim_end_matches('.');
    let mut letters = about.chars();
    let first = letters.next().map(|letter| letter.to_lowercase().to_string());
    first.map_or_else(|| name.to_owned(), |first| first + letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(all(feature = "cuda", feature = "wgpu"))]
    fn generated_sections_of_the_book_are_current() {
        let book = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src"));
        let checked = update_docs(book, true);
        assert!(checked.is_ok(), "{}", checked.unwrap_err());
    }

    #[test]
    fn generated_sections_are_replaced_in_place() {
        let page = "before\n<!-- from the code: regimes -->\nSTALE\n<!-- end -->\nafter\n";
        let renewed = with_generated_sections("method.md", page).unwrap();
        assert!(renewed.starts_with("before\n<!-- from the code: regimes -->\n\n| regime |"), "{renewed}");
        assert!(renewed.ends_with("|\n\n<!-- end -->\nafter\n") && !renewed.contains("STALE"), "{renewed}");
        assert_eq!(with_generated_sections("method.md", &renewed).unwrap(), renewed);
        assert!(with_generated_sections("method.md", "no marks").unwrap_err().contains("regimes"));
    }

    #[test]
    fn every_key_has_a_description() {
        for part in [file_keys(), entry_keys(), key_table("Timing"), key_table("Rule"), faults()] {
            assert!(part.lines().count() > 3, "{part}");
            assert!(part.lines().skip(2).all(|row| !row.contains("|  |\n") && row.ends_with(" |")), "{part}");
        }
        assert!(entry_keys().contains("`axes`") && entry_keys().contains("`peak_memory`"));
        assert!(entry_keys().contains("| `dtype` | `high_precision_dtype`, `precision` |"), "{}", entry_keys());
    }
}
