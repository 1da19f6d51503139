//! Reads records from a Parquet file: identity, outcome, and the values that reports and comparisons show.

use polars::prelude::{AnyValue, DataFrame, ParquetReader, PolarsResult, SerReader};
use serde_json::{Map, Value};
use std::fs::File;
use std::path::Path;

use crate::SinkError;
use crate::columns::{COLUMNS, RecordColumn};
use crate::record::{Accuracy, Record};

/// Fields stored unchanged in the table; fields of the accuracy are stored unchanged as well.
const UNCHANGED_FIELDS: &[&str] = &[
    "id",
    "mode",
    "name",
    "workload",
    "recipe",
    "sparsity",
    "implementation",
    "device",
    "dtype",
    "output_dtype",
    "shape_name",
    "regime",
    "status",
    "reason",
    "stopwatch",
    "kernel",
    "converged",
    "held_back",
    "in_turns_ns.median",
    "clock_mhz",
    "flops",
    "bytes",
    "scaling",
    "implied",
    "kernel_launches",
    "fusion_state",
    "speedup.vs",
    "speedup.ratio",
    "speedup.lo",
    "speedup.hi",
    "speedup.verdict",
    "tflops",
    "gbps",
    "roofline.bound",
    "roofline.percent",
    "roofline.against",
    "roofline.compute_percent",
    "roofline.memory_percent",
    "weight_bytes",
    "baseline_weight_bytes",
    "peak_bytes",
    "telemetry.joules",
    "trace",
    "memory_profile",
];

/// Path of telemetry samples, of which the table holds the median.
const SAMPLES_PREFIX: &str = "telemetry.samples.";

/// Lists of times, stored as text.
const TIME_LISTS: [&str; 2] = ["of_processes_ns", "of_places_ns"];

/// Reads the records of a Parquet file written by this crate, as far as it holds them.
pub fn read_records(path: &Path) -> Result<Vec<Record>, SinkError> {
    let file = File::open(path).map_err(|cause| SinkError::Read { path: path.to_owned(), cause })?;
    let refused = |why: String| SinkError::NotOurTable { path: path.to_owned(), why };
    let frame = ParquetReader::new(file).finish().map_err(|error| refused(error.to_string()))?;
    let columns: Vec<&RecordColumn> = COLUMNS.iter().filter(|column| is_read(column)).collect();
    let rows = 0..frame.height();
    let records = rows.map(|row| {
        let fields = fields(&frame, &columns, row).map_err(|error| error.to_string())?;
        serde_json::from_value(Value::Object(fields)).map_err(|error| format!("row {}: {error}", row + 1))
    });
    records.collect::<Result<_, String>>().map_err(refused)
}

fn is_read(column: &RecordColumn) -> bool {
    let of_accuracy = Accuracy::COLUMNS.iter().any(|known| known.name == column.name);
    UNCHANGED_FIELDS.contains(&column.field)
        || column.field.starts_with("time_ns.")
        || column.name == "shape"
        || TIME_LISTS.contains(&column.name)
        || column.field.starts_with(SAMPLES_PREFIX)
        || of_accuracy
}

/// Fields of a record as in its JSON.
fn fields(frame: &DataFrame, columns: &[&RecordColumn], row: usize) -> PolarsResult<Map<String, Value>> {
    let (mut fields, mut sample) = (Map::new(), Map::new());
    for column in columns {
        let cells = match frame.column(column.name) {
            // Missing in tables of early versions.
            Err(_) if TIME_LISTS.contains(&column.name) => continue,
            cells => cells?,
        };
        let value = match cells.get(row)? {
            AnyValue::String(text) if column.name == "shape" => parse_axes(text),
            AnyValue::String(text) if TIME_LISTS.contains(&column.name) => parse_times(text),
            AnyValue::String(text) => text.into(),
            AnyValue::StringOwned(text) => text.as_str().into(),
            AnyValue::UInt64(count) => count.into(),
            AnyValue::Float64(number) => number.into(),
            AnyValue::Boolean(flag) => flag.into(),
            _ => continue,
        };
        if let Some(figure) = column.field.strip_prefix(SAMPLES_PREFIX) {
            sample.insert(figure.to_owned(), sample_value(figure, value));
            continue;
        }
        match column.field.split_once('.') {
            None => drop(fields.insert(column.field.to_owned(), value)),
            Some((facet, field)) => fields.entry(facet).or_insert_with(|| Map::new().into())[field] = value,
        }
    }
    if !sample.is_empty() || fields.contains_key("telemetry") {
        sample.insert("round".into(), 0.into());
        let telemetry = fields.entry("telemetry").or_insert_with(|| Map::new().into());
        telemetry["source"] = Value::String(String::new());
        telemetry["samples"] = Value::Array(vec![sample.into()]);
    }
    Ok(fields)
}

/// Converts a telemetry value to its JSON form: clocks are integers, and throttle reasons a list.
fn sample_value(figure: &str, value: Value) -> Value {
    match (figure, value.as_f64()) {
        ("clock_mhz" | "memory_clock_mhz", Some(megahertz)) => (megahertz.round() as u64).into(),
        ("throttle", _) => value.as_str().unwrap_or_default().split(", ").collect::<Vec<_>>().into(),
        _ => value,
    }
}

/// Parses a list of times such as `1040.5;960`.
fn parse_times(text: &str) -> Value {
    text.split(';').filter_map(|time| time.parse::<f64>().ok()).collect::<Vec<_>>().into()
}

/// Parses axes such as `m1024-k512-n256` into an object.
fn parse_axes(text: &str) -> Value {
    let axis = |part: &str| {
        let name = part.trim_end_matches(|c: char| c.is_ascii_digit());
        Some((name.to_owned(), part[name.len()..].parse::<u64>().ok()?.into()))
    };
    text.split('-').filter_map(axis).collect::<Map<String, Value>>().into()
}
