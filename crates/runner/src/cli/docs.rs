//! `calorimeter docs`: generates sections of the book from the code, and code blocks from files, between markers in its
//! pages.

use super::command::Cli;
use super::error::CliError;
use super::kernels;
use crate::Exit;
use crate::dialects::own::File;
use crate::dialects::schema;
use calorimeter_case::{Regime, WarningCode};
use calorimeter_sinks::{columns, log_line};
use clap::CommandFactory;
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Generated section: page, name in its markers, and generator.
type GeneratedSection = (&'static str, &'static str, fn() -> String);

/// All generated sections. A new one needs a line here and a pair of markers in its page.
const SECTIONS: &[GeneratedSection] = &[
    ("commands.md", "commands", commands),
    ("commands.md", "options of run", options_of_run),
    ("outputs.md", "columns", columns::markdown),
    ("warnings.md", "warnings", WarningCode::markdown),
    ("method.md", "regimes", regimes),
    ("recipes.md", KERNELS, kernels::markdown),
    ("config.md", "keys of a file", file_keys),
    ("config.md", "keys of an entry", entry_keys),
    ("config.md", "timing", || key_table("Timing")),
    ("mock.md", "rules of the mock device", || key_table("Rule")),
    ("mock.md", "faults", faults),
];

/// Section that lists the kernels of all backends. Builds without one of them leave the section as it is.
const KERNELS: &str = "kernels";

/// True if this build can generate the section [`KERNELS`].
const HAS_ALL_KERNELS: bool = cfg!(all(feature = "cuda", feature = "wgpu"));

/// Line before a generated code block; a path relative to the page follows, and `#` with the name of an anchor.
const FILE_MARKER: &str = "<!-- file: ";

/// Line after generated text.
const END_MARKER: &str = "<!-- end -->";

/// Updates the pages in a folder and reports the changed ones. With `check`, changes nothing and fails if a page is out
/// of date.
pub(super) fn update_docs(dir: &Path, check: bool) -> Result<Exit, CliError> {
    if !HAS_ALL_KERNELS {
        log_line!("the table of layer kernels stays as it is: it needs a build with `--features full`");
    }
    let error_at = |path: &Path, error: &dyn std::fmt::Display| CliError::Usage(format!("{}: {error}", path.display()));
    for path in pages(dir).map_err(|error| error_at(dir, &error))? {
        let before = fs::read_to_string(&path).map_err(|error| error_at(&path, &error))?;
        let name = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy();
        let after = with_generated_sections(&name, &before);
        let after = after.and_then(|text| with_file_blocks(path.parent().unwrap_or(dir), &text));
        let after = after.map_err(|error| error_at(&path, &error))?;
        if before == after {
            continue;
        }
        if check {
            return Err(error_at(&path, &"out of date; run `calorimeter docs`"));
        }
        fs::write(&path, after).map_err(|error| error_at(&path, &error))?;
        log_line!("wrote {}", path.display());
    }
    Ok(Exit::Success)
}

/// Pages below a folder, and pages of generated sections even if they do not exist.
fn pages(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut pages: Vec<PathBuf> = SECTIONS.iter().map(|(page, ..)| dir.join(page)).collect();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages.dedup();
    Ok(pages)
}

/// Returns the page with its generated sections replaced.
fn with_generated_sections(page: &str, text: &str) -> Result<String, String> {
    let mut text = text.to_owned();
    for (_, name, generate) in SECTIONS.iter().filter(|(section_page, ..)| *section_page == page) {
        let start = format!("<!-- from the code: {name} -->\n");
        let from = text.find(&start).ok_or_else(|| format!("missing {}", start.trim_end()))? + start.len();
        let length = text[from..].find(END_MARKER);
        let length = length.ok_or_else(|| format!("missing {END_MARKER} after {}", start.trim_end()))?;
        if *name != KERNELS || HAS_ALL_KERNELS {
            text.replace_range(from..from + length, &format!("\n{}\n", generate()));
        }
    }
    Ok(text)
}

/// Returns the page in `folder` with its code blocks replaced by the text of the files that their markers name.
fn with_file_blocks(folder: &Path, text: &str) -> Result<String, String> {
    let (mut page, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(FILE_MARKER) {
        let (source, after) = after.split_once(" -->\n").ok_or_else(|| format!("incomplete line {FILE_MARKER}"))?;
        let (_, after) = after.split_once(END_MARKER).ok_or_else(|| format!("missing {END_MARKER} after {source}"))?;
        let block = file_block(folder, source)?;
        page += &format!("{before}{FILE_MARKER}{source} -->\n\n{block}\n{END_MARKER}");
        rest = after;
    }
    Ok(page + rest)
}

/// Code block with the text of a file, or of the part between `ANCHOR` and `ANCHOR_END` comments.
fn file_block(folder: &Path, source: &str) -> Result<String, String> {
    let (path, anchor) = source.split_once('#').unwrap_or((source, ""));
    let text = fs::read_to_string(folder.join(path)).map_err(|error| format!("{path}: {error}"))?;
    let ends_with = |line: &str, word: &str| line.trim().ends_with(&format!("{word}: {anchor}"));
    let start = text.lines().skip_while(|line| !anchor.is_empty() && !ends_with(line, "ANCHOR"));
    let part = start.take_while(|line| anchor.is_empty() || !ends_with(line, "ANCHOR_END"));
    let lines: Vec<&str> = part.filter(|line| !line.contains("// ANCHOR")).collect();
    if lines.is_empty() {
        return Err(format!("{path} has no text between ANCHOR: {anchor} and ANCHOR_END: {anchor}"));
    }
    let indent = lines.iter().filter(|line| !line.is_empty()).map(|line| line.len() - line.trim_start().len()).min();
    let code = lines.iter().map(|line| format!("{}\n", line.get(indent.unwrap_or(0)..).unwrap_or_default()));
    let language = match path.rsplit('.').next().unwrap_or_default() {
        "rs" => "rust",
        "yml" => "yaml",
        "cu" => "cuda",
        "h" => "c",
        other => other,
    };
    Ok(format!("```{language}\n{}```\n", code.collect::<String>()))
}

/// Visible commands with their descriptions.
fn commands() -> String {
    let program = Cli::command();
    let visible = program.get_subcommands().filter(|command| !command.is_hide_set());
    let row = |command: &clap::Command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        format!("| `{}` | {} |\n", command.get_name(), table_cell(&about))
    };
    format!("| command | purpose |\n|---|---|\n{}", visible.map(row).collect::<String>())
}

/// Options of `calorimeter run`, in the order of `--help`.
fn options_of_run() -> String {
    let program = Cli::command();
    let options = program.find_subcommand("run").into_iter().flat_map(|run| run.get_opts());
    let row = |option: &clap::Arg| {
        let name = option.get_long().unwrap_or_default();
        let is_optional = option.get_num_args().is_some_and(|count| count.min_values() == 0);
        let value = option.get_value_names().filter(|_| option.get_action().takes_values());
        let value = value.map_or_else(String::new, |names| match names.join(" ") {
            names if is_optional => format!("[={names}]"),
            names => format!(" {names}"),
        });
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        format!("| `--{name}{value}` | {} |\n", table_cell(&help))
    };
    format!("| option | effect |\n|---|---|\n{}", options.map(row).collect::<String>())
}

/// Text on one line, with the characters escaped that end a cell of a Markdown table.
fn table_cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn regimes() -> String {
    let row = |regime: Regime| format!("| `{regime}` | {} |\n", regime.description());
    format!("| regime | meaning |\n|---|---|\n{}", Regime::ALL.map(row).concat())
}

fn file_keys() -> String {
    let is_file_key = |key: &str| !is_entry_key(key);
    table(plain_schema(), &definition(aliased_schema(), "File"), is_file_key)
}

fn entry_keys() -> String {
    table(&definition(plain_schema(), "ModelEntry"), &definition(aliased_schema(), "ModelEntry"), |_| true)
}

fn key_table(name: &str) -> String {
    table(&definition(plain_schema(), name), &definition(aliased_schema(), name), |_| true)
}

fn faults() -> String {
    let faults = definition(plain_schema(), "Fault");
    let row =
        |fault: &Value| format!("| `{}` | {} |\n", string_field(fault, "const"), string_field(fault, "description"));
    let rows = faults["oneOf"].as_array().into_iter().flatten().map(row);
    format!("| fault | effect |\n|---|---|\n{}", rows.collect::<String>())
}

/// JSON Schema without alternative key names.
fn plain_schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| schemars::schema_for!(File).to_value());
    &SCHEMA
}

fn aliased_schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(&schema()).unwrap_or_default());
    &SCHEMA
}

fn definition(schema: &Value, name: &str) -> Value {
    schema["$defs"][name].clone()
}

fn properties(schema: &Value) -> Map<String, Value> {
    schema["properties"].as_object().cloned().unwrap_or_default()
}

/// True if a key at the top of a file is also a key of its entries.
fn is_entry_key(key: &str) -> bool {
    properties(&definition(plain_schema(), "ModelEntry")).contains_key(key)
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
    let definition = definition(plain_schema(), name);
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
    fn generated_sections_of_the_book_are_current() {
        let book = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src"));
        let checked = update_docs(book, true);
        assert!(checked.is_ok(), "{}", checked.unwrap_err());
    }

    #[test]
    fn every_warning_has_a_remedy() {
        let page = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/warnings.md"));
        let page = fs::read_to_string(page).unwrap();
        let (generated, remedies) = page.split_once(END_MARKER).unwrap();
        let codes = generated.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let missing: Vec<&str> = codes.filter(|code| !remedies.contains(&format!("`{code}`"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
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
    fn code_blocks_contain_the_text_of_their_files() {
        let folder = tempfile::tempdir().unwrap();
        let code =
            "// first\nmod a {\n    // ANCHOR: part\n    fn b() {\n        c();\n    }\n    // ANCHOR_END: part\n}\n";
        fs::write(folder.path().join("a.rs"), code).unwrap();
        let page = "x\n<!-- file: a.rs -->\nSTALE\n<!-- end -->\ny\n<!-- file: a.rs#part -->\n<!-- end -->\nz\n";
        let renewed = with_file_blocks(folder.path(), page).unwrap();
        let whole = "```rust\n// first\nmod a {\n    fn b() {\n        c();\n    }\n}\n```\n";
        let part = "```rust\nfn b() {\n    c();\n}\n```\n";
        let expected = format!(
            "x\n<!-- file: a.rs -->\n\n{whole}\n<!-- end -->\ny\n<!-- file: a.rs#part -->\n\n{part}\n<!-- end -->\nz\n"
        );
        assert_eq!(renewed, expected);
        assert_eq!(with_file_blocks(folder.path(), &renewed).unwrap(), renewed);
        for broken in ["a.rs#other -->\n<!-- end -->", "b.rs -->\n<!-- end -->", "a.rs -->\n", "a.rs"] {
            assert!(with_file_blocks(folder.path(), &format!("<!-- file: {broken}")).is_err(), "{broken}");
        }
    }

    #[test]
    fn stale_pages_below_the_folder_fail_the_check() {
        let book = tempfile::tempdir().unwrap();
        for (page, ..) in SECTIONS {
            let sections = SECTIONS.iter().filter(|(name, ..)| name == page);
            let marks = sections.map(|(_, name, _)| format!("<!-- from the code: {name} -->\n<!-- end -->\n"));
            fs::write(book.path().join(page), marks.collect::<String>()).unwrap();
        }
        fs::create_dir(book.path().join("how-to")).unwrap();
        let page = book.path().join("how-to/page.md");
        fs::write(book.path().join("a.c"), "int a;\n").unwrap();
        fs::write(&page, "<!-- file: ../a.c -->\n<!-- end -->\n").unwrap();
        assert!(update_docs(book.path(), true).is_err());
        update_docs(book.path(), false).unwrap();
        assert!(fs::read_to_string(&page).unwrap().contains("```c\nint a;\n```\n"));
        update_docs(book.path(), true).unwrap();
        fs::write(book.path().join("a.c"), "int b;\n").unwrap();
        assert!(update_docs(book.path(), true).is_err());
    }

    #[test]
    fn every_command_and_option_has_a_description() {
        for part in [commands(), options_of_run()] {
            assert!(part.lines().count() > 20 && !part.contains("|  |"), "{part}");
        }
        assert!(!commands().contains("`docs`"));
        assert!(options_of_run().contains("| `--filter REGEX` |"), "{}", options_of_run());
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
