//! Tables of records: CSV, Parquet and columns.

use crate::samples::{bare, full, run, stays_home};
use calorimeter_case::Case;
use calorimeter_sinks::columns::{COLUMNS, Cell, JOURNAL_ONLY, markdown};
use calorimeter_sinks::record::{Execution, Rates, Record, Status};
#[cfg(feature = "tables")]
use calorimeter_sinks::table;
use calorimeter_sinks::{not_in_this_build, write_all};
#[cfg(feature = "tables")]
use polars::prelude::{ParquetReader, SerReader};
use std::collections::BTreeSet;
use std::fs;

#[test]
fn a_csv_gives_back_every_cell() {
    let dir = tempfile::tempdir().unwrap();
    let unmeasured = Case { sparsity: None, flops: None, compile_mode: None, ..stays_home("b").case };
    let records = vec![stays_home("a"), Record::new(unmeasured, Status::Timeout), stays_home("c")];
    let written = write_all(&run(dir.path(), records.clone()));
    assert!(written.errors.is_empty(), "{:?}", written.errors);
    assert_eq!(written.paths[0], dir.path().join("results.csv"));
    let mut reader = csv::Reader::from_path(&written.paths[0]).unwrap();
    let lists = ["windows", "of_processes_ns", "of_places_ns"];
    let columns = || COLUMNS.iter().filter(|column| !lists.contains(&column.name));
    let names: Vec<&str> = columns().map(|column| column.name).collect();
    assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>(), names);
    let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(lines.len(), records.len());
    for (line, record) in lines.iter().zip(&records) {
        for (text, column) in line.iter().zip(columns()) {
            match column.cell(record) {
                Some(Cell::Text(expected)) => assert_eq!(text, expected, "{}", column.name),
                Some(Cell::Count(expected)) => assert_eq!(text.parse(), Ok(expected), "{}", column.name),
                Some(Cell::Number(expected)) => assert_eq!(text.parse(), Ok(expected), "{}", column.name),
                Some(Cell::Flag(expected)) => assert_eq!(text.parse(), Ok(expected), "{}", column.name),
                None => assert_eq!(text, "", "{}", column.name),
            }
        }
    }
}

#[cfg(feature = "tables")]
#[test]
fn parquet_holds_the_same_table_as_the_records() {
    let dir = tempfile::tempdir().unwrap();
    let unmeasured = Case { sparsity: None, flops: None, compile_mode: None, ..stays_home("b").case };
    let records = vec![stays_home("a"), Record::new(unmeasured, Status::Timeout), stays_home("c")];
    let written = write_all(&run(dir.path(), records.clone()));
    let files = ["results.csv", "results.parquet", "index.html"].map(|name| dir.path().join(name));
    assert_eq!(written.paths, files);
    let frame = table::data_frame(&records).unwrap();
    let parquet = ParquetReader::new(fs::File::open(&written.paths[1]).unwrap()).finish().unwrap();
    assert!(parquet.equals_missing(&frame), "{parquet}");
}

#[cfg(feature = "tables")]
#[test]
fn what_each_process_found_is_read_back_from_parquet_to_the_last_digit() {
    let dir = tempfile::tempdir().unwrap();
    let mut several = stays_home("a");
    let single = Record::new(stays_home("b").case, Status::Failed);
    several.time.of_processes_ns = vec![1040.125, 0.1 + 0.2, 1e9];
    several.time.of_places_ns = vec![17.0, 1.0 / 3.0];
    let written = write_all(&run(dir.path(), vec![several.clone(), single]));
    assert!(written.errors.is_empty(), "{:?}", written.errors);
    let read = table::read_records(&dir.path().join("results.parquet")).unwrap();
    assert_eq!(read[0].time.of_processes_ns, several.time.of_processes_ns);
    assert_eq!(read[0].time.of_places_ns, several.time.of_places_ns);
    assert!(read[1].time.of_processes_ns.is_empty() && read[1].time.of_places_ns.is_empty());
}

#[test]
fn a_build_without_tables_says_which_file_it_cannot_write() {
    let expected: &[&str] = if cfg!(feature = "tables") { &[] } else { &["results.parquet"] };
    assert_eq!(not_in_this_build(), expected);
}

/// Records with text that needs quotes, text that does not, empty text, and numbers around the limits of exponent
/// notation.
fn awkward() -> Vec<Record> {
    let with = |id: &str, number: f64| Record {
        rates: Rates { tflops: Some(number), gbps: Some(-number), ..bare(id).rates },
        execution: Execution { kernel: Some("#".into()), ..bare(id).execution },
        ..bare(id)
    };
    let mut records = vec![full("a"), bare("b"), bare("")];
    for (id, number) in [
        (" spaces ", 0.0),
        ("comma, in it", 1e-5),
        ("quote\"in it", 9.99e-6),
        ("\"quoted\"", 1e-4),
        ("line\nfeed", 123_456_789_012_345.0),
        ("carriage\rreturn", 9_999_999_999_999_998.0),
        ("tab\tand 'quotes'", 1e16),
        ("µ ± ×, \"", 1.234_567_890_123_456_7e19),
        ("back\\slash", 5e-324),
        ("#comment", f64::MAX),
        ("=1+1", 1.0),
        ("-", 0.1 + 0.2),
        ("nan", f64::NAN),
        ("null", f64::INFINITY),
    ] {
        records.push(with(id, number));
    }
    records
}

/// The golden file was written by the CSV writer of polars, then windows were removed.
#[test]
fn the_csv_is_to_the_byte_what_it_was_when_polars_wrote_it_but_for_formulas() {
    let dir = tempfile::tempdir().unwrap();
    let records = awkward().into_iter().map(|record| Record { case: Case { export: None, ..record.case }, ..record });
    let written = write_all(&run(dir.path(), records.collect()));
    assert!(written.errors.is_empty(), "{:?}", written.errors);
    let csv = fs::read_to_string(&written.paths[0]).unwrap();
    let golden = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/results.csv")).unwrap();
    for (line, expected) in csv.lines().zip(golden.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(csv.len(), golden.len());
}

/// A new field must be added to [`full`], whose debug output shows every field; absent ones are recognized by a word.
#[test]
fn the_full_record_leaves_no_field_out() {
    let text = format!("{:?}", full("a"));
    for absent in ["None", "[]", "\"\"", ": 0,"] {
        assert!(!text.contains(absent), "something is {absent} in {text}");
    }
    assert!(format!("{:?}", bare("a")).contains("None"));
}

#[test]
fn every_column_has_a_cell_in_the_full_record() {
    let full = full("a");
    for column in COLUMNS.iter() {
        assert!(column.cell(&full).is_some(), "{} is empty", column.name);
    }
}

/// Collects the paths of all scalars in a JSON value; lists are traversed.
fn leaves(value: &serde_json::Value, place: &str, found: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                leaves(value, &if place.is_empty() { name.clone() } else { format!("{place}.{name}") }, found);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| leaves(value, place, found)),
        _ => {
            found.insert(place.to_owned());
        }
    }
}

#[test]
fn every_field_of_the_journal_is_documented_once_and_nothing_else_is() {
    let mut written = BTreeSet::new();
    leaves(&serde_json::to_value(full("a")).unwrap(), "", &mut written);
    // Columns that show a whole list or object; its parts are listed separately.
    let whole = ["shape", "windows"];
    let documented: Vec<&str> = COLUMNS
        .iter()
        .map(|column| column.field)
        .filter(|field| !whole.contains(field))
        .chain(JOURNAL_ONLY.iter().map(|field| field.name))
        .collect();
    let unique: BTreeSet<String> = documented.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(unique.len(), documented.len(), "a field is documented twice");
    assert_eq!(written, unique);
}

#[test]
fn every_column_says_what_it_is() {
    let names: BTreeSet<&str> = COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(names.len(), COLUMNS.len());
    for column in COLUMNS.iter() {
        assert!(column.doc.len() > 3 && !column.doc.contains('|'), "{}: {}", column.name, column.doc);
    }
    let lines = markdown();
    assert_eq!(lines.lines().filter(|line| line.starts_with("| `")).count(), COLUMNS.len() + JOURNAL_ONLY.len());
}

#[cfg(feature = "tables")]
#[test]
fn every_table_has_the_same_columns_in_the_same_order() {
    let schemas = [vec![], vec![bare("b")], vec![full("a"), bare("b")]]
        .map(|records| table::data_frame(&records).unwrap().schema().as_ref().clone());
    assert_eq!(schemas[0], schemas[1]);
    assert_eq!(schemas[0], schemas[2]);
    let names: Vec<&str> = schemas[0].iter_names().map(|name| name.as_str()).collect();
    assert!(names.iter().eq(COLUMNS.iter().map(|column| &column.name)));
    assert_eq!(names[0], "id");
    assert_eq!(names[11..16], ["m", "k", "n", "shape", "regime"]);
}

#[test]
fn lists_become_text_and_what_was_not_measured_nothing() {
    let records = [full("a"), bare("b")];
    let cell = |name: &str, row: usize| {
        let column = COLUMNS.iter().find(|column| column.name == name).unwrap();
        column.cell(&records[row])
    };
    let text = |text: &'static str| Some(Cell::Text(text.into()));
    for (name, measured, not_measured) in [
        ("shape", text("m1024-k512-n18446744073709551615"), text("batch8-m2")),
        ("n", Some(Cell::Count(u64::MAX)), None),
        ("n_windows", Some(Cell::Count(2)), None),
        ("launches", Some(Cell::Count(22)), None),
        ("windows", text("10:123401;12:18446744073709551615"), None),
        ("warnings", text("throttled; hot"), None),
        ("status", text("ok"), text("crashed")),
        ("time_ns", Some(Cell::Number(12_340.125)), None),
        ("converged", Some(Cell::Flag(true)), None),
    ] {
        assert_eq!((cell(name, 0), cell(name, 1)), (measured, not_measured), "{name}");
    }
}
