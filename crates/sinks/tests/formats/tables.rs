//! Tables of records: CSV, Parquet and columns.

use crate::samples::{bare, full, run, without_export};
use calorimeter_case::Case;
use calorimeter_sinks::columns::{COLUMNS, Cell, JOURNAL_ONLY, markdown};
use calorimeter_sinks::record::{Execution, Rates, Record, Status};
#[cfg(feature = "tables")]
use calorimeter_sinks::table;
use calorimeter_sinks::write_all;
#[cfg(feature = "tables")]
use polars::prelude::{ParquetReader, SerReader};
use std::collections::BTreeSet;
use std::fs;

#[test]
fn csv_round_trips() {
    let dir = tempfile::tempdir().unwrap();
    let unmeasured = Case { sparsity: None, flops: None, compile_mode: None, ..without_export("b").case };
    let records = vec![without_export("a"), Record::new(unmeasured, Status::Timeout), without_export("c")];
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
fn parquet_equals_the_data_frame() {
    let dir = tempfile::tempdir().unwrap();
    let unmeasured = Case { sparsity: None, flops: None, compile_mode: None, ..without_export("b").case };
    let records = vec![without_export("a"), Record::new(unmeasured, Status::Timeout), without_export("c")];
    let written = write_all(&run(dir.path(), records.clone()));
    let files = ["results.csv", "results.parquet", "index.html"].map(|name| dir.path().join(name));
    assert_eq!(written.paths, files);
    let frame = table::data_frame(&records).unwrap();
    let parquet = ParquetReader::new(fs::File::open(&written.paths[1]).unwrap()).finish().unwrap();
    assert!(parquet.equals_missing(&frame), "{parquet}");
}

#[cfg(feature = "tables")]
#[test]
fn process_times_round_trip_through_parquet() {
    let dir = tempfile::tempdir().unwrap();
    let mut several = without_export("a");
    let single = Record::new(without_export("b").case, Status::Failed);
    several.time.of_processes_ns = vec![1040.125, 0.1 + 0.2, 1e9];
    several.time.of_places_ns = vec![17.0, 1.0 / 3.0];
    let written = write_all(&run(dir.path(), vec![several.clone(), single]));
    assert!(written.errors.is_empty(), "{:?}", written.errors);
    let read = table::read_records(&dir.path().join("results.parquet")).unwrap();
    assert_eq!(read[0].time.of_processes_ns, several.time.of_processes_ns);
    assert_eq!(read[0].time.of_places_ns, several.time.of_places_ns);
    assert!(read[1].time.of_processes_ns.is_empty() && read[1].time.of_places_ns.is_empty());
}

/// Records with text that needs quotes, text that does not, empty text, and numbers around the limits of exponent
/// notation.
fn awkward_records() -> Vec<Record> {
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
fn csv_equals_golden_file() {
    let dir = tempfile::tempdir().unwrap();
    let records =
        awkward_records().into_iter().map(|record| Record { case: Case { export: None, ..record.case }, ..record });
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
fn full_record_sets_every_field() {
    let text = format!("{:?}", full("a"));
    for absent in ["None", "[]", "\"\"", ": 0,"] {
        assert!(!text.contains(absent), "something is {absent} in {text}");
    }
    assert!(format!("{:?}", bare("a")).contains("None"));
}

#[test]
fn full_record_fills_every_column() {
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
fn every_journal_field_is_documented_once() {
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
fn every_column_is_documented() {
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
fn tables_have_identical_columns() {
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
fn lists_are_text_and_unmeasured_cells_empty() {
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
