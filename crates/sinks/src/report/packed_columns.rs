//! Columnar encoding of records for the page; each text is stored once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use serde::{Serialize, Serializer};

use super::derived_columns::DERIVED;
use super::run::{ReportedRun, records};
use crate::columns::{COLUMNS, Cell, CellKind, RecordColumn};
use crate::links::RunLinks;
use crate::record::Record;

/// Column with a cell per record.
#[derive(Serialize)]
pub(super) struct PackedColumn<'a> {
    name: Cow<'a, str>,
    unit: &'static str,
    doc: Cow<'static, str>,
    kind: &'static str,
    #[serde(flatten)]
    cells: PackedCells<'a>,
}

/// Cells; `None` means not measured.
#[derive(Serialize)]
#[serde(untagged)]
enum PackedCells<'a> {
    Numbers { numbers: Vec<Option<RoundedNumber>> },
    Words { words: Vec<Cow<'a, str>>, at: Vec<Option<u32>> },
}

/// Number rounded to six digits, more than any measurement has. Integers are written without a decimal point.
#[derive(Clone, Copy)]
struct RoundedNumber(f64);

impl Serialize for RoundedNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = self.0.fract() == 0.0 && self.0.abs() < 9e15;
        if whole { serializer.serialize_i64(self.0 as i64) } else { serializer.serialize_f64(self.0) }
    }
}

impl RoundedNumber {
    fn rounded(value: f64) -> Self {
        Self(format!("{value:.5e}").parse().unwrap_or(value))
    }
}

/// Encodes every column with values, except windows, which are too long for a page. Axes are taken from the shape.
pub(super) fn pack_columns<'a>(runs: &'a [ReportedRun], page: &Path) -> Vec<PackedColumn<'a>> {
    let mut columns = Vec::new();
    if runs.len() > 1 {
        let names = runs.iter().flat_map(|run| run.read.records.iter().map(|_| Some(run.name.as_str().into())));
        columns.extend(words("run", "run", names));
    }
    for column in COLUMNS.iter().filter(|column| !["windows", "m", "k", "n"].contains(&column.name)) {
        columns.extend(pack_column(column, runs));
        if column.name == "shape" {
            columns.extend(axes(runs));
        }
        if column.name == "memory_percent" {
            columns.extend(peaks(runs));
        }
    }
    columns.extend(links(runs, page));
    columns
}

fn text(cell: Cell<'_>) -> Option<Cow<'_, str>> {
    if let Cell::Text(text) = cell { Some(text) } else { None }
}

fn number(cell: Cell<'_>) -> Option<RoundedNumber> {
    match cell {
        Cell::Count(count) => Some(RoundedNumber(count as f64)),
        Cell::Number(number) => Some(RoundedNumber::rounded(number)),
        Cell::Flag(flag) => Some(RoundedNumber(f64::from(u8::from(flag)))),
        Cell::Text(_) => None,
    }
}

/// Columns of the axes of all shapes, in order of first occurrence.
fn axes(runs: &[ReportedRun]) -> Vec<PackedColumn<'_>> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in records(runs).flat_map(|record| record.case.shape.iter()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let column = |name: &'_ str| {
        let sizes = records(runs).map(|record| record.case.shape.get(name).map(|size| RoundedNumber(size as f64)));
        numbers(Cow::Owned(name.to_owned()), "", "axis of the shape", sizes)
            .map(|axis| PackedColumn { kind: "axis", ..axis })
    };
    names.into_iter().filter_map(column).collect()
}

/// Columns of the machine's peaks, as stored in each record.
fn peaks(runs: &[ReportedRun]) -> impl Iterator<Item = PackedColumn<'_>> {
    let peak = |of: fn(&Record) -> Option<f64>| records(runs).map(move |record| of(record).map(RoundedNumber::rounded));
    let operations = peak(|record| record.rates.roofline.as_ref()?.peak_tflops);
    let bytes = peak(|record| record.rates.roofline.as_ref()?.peak_gbps);
    let dtype = |record: &Record| Some(record.rates.roofline.as_ref()?.peak_dtype?.as_str().into());
    let columns = [
        numbers("peak_tflops".into(), "10¹² operations/s", "compute peak under sustained load", operations),
        words("peak_dtype", "dtype of the compute peak", records(runs).map(dtype)),
        numbers("peak_gbps".into(), "10⁹ bytes/s", "peak of memory or cache", bytes),
    ];
    columns.into_iter().flatten()
}

/// Columns with the links from the page to the files of each case.
fn links<'a>(runs: &'a [ReportedRun], page: &Path) -> impl Iterator<Item = PackedColumn<'a>> {
    let link = |file: fn(&Record) -> Option<std::path::PathBuf>| {
        let of_run = |run: &'a ReportedRun| {
            let way = RunLinks::new(page, &run.dir);
            let addresses = run.read.records.iter().map(|record| way.url(&file(record)?).map(Cow::Owned));
            addresses.collect::<Vec<_>>()
        };
        runs.iter().flat_map(of_run).collect::<Vec<_>>().into_iter()
    };
    let trace = link(|record| record.profile.trace.as_ref().map(Into::into));
    let memory = link(|record| Some(Path::new(record.footprint.memory_profile.as_ref()?).join("memory.html")));
    let columns = [words("trace_link", "", trace), words("memory_link", "", memory)];
    columns.into_iter().flatten().map(|column| PackedColumn { kind: "link", ..column })
}

fn numbers<'a>(
    name: Cow<'a, str>,
    unit: &'static str,
    doc: &'static str,
    cells: impl Iterator<Item = Option<RoundedNumber>>,
) -> Option<PackedColumn<'a>> {
    let numbers: Vec<Option<RoundedNumber>> = cells.collect();
    let some = numbers.iter().any(Option::is_some);
    some.then(|| PackedColumn {
        name,
        unit,
        doc: strip_markdown(doc),
        kind: "number",
        cells: PackedCells::Numbers { numbers },
    })
}

fn words<'a>(
    name: &'a str,
    doc: &'static str,
    cells: impl Iterator<Item = Option<Cow<'a, str>>>,
) -> Option<PackedColumn<'a>> {
    let mut words: Vec<Cow<str>> = Vec::new();
    let mut place_of: HashMap<Cow<str>, u32> = HashMap::new();
    let mut place = |text: Cow<'a, str>| {
        *place_of.entry(text).or_insert_with_key(|text| {
            words.push(text.clone());
            words.len() as u32 - 1
        })
    };
    let at: Vec<Option<u32>> = cells.map(|cell| cell.map(&mut place)).collect();
    let some = !words.is_empty();
    some.then(|| PackedColumn {
        name: name.into(),
        unit: "",
        doc: strip_markdown(doc),
        kind: "text",
        cells: PackedCells::Words { words, at },
    })
}

/// Encodes the columns that only figures show.
pub(super) fn pack_derived(runs: &[ReportedRun]) -> Vec<PackedColumn<'_>> {
    DERIVED.iter().filter_map(|column| pack_column(column, runs)).collect()
}

fn pack_column<'a>(column: &'static RecordColumn, runs: &'a [ReportedRun]) -> Option<PackedColumn<'a>> {
    let cells = records(runs).map(|record| column.cell(record));
    let found = match column.kind {
        CellKind::Text => words(column.name, column.doc, cells.map(|cell| cell.and_then(text))),
        _ => numbers(column.name.into(), column.unit, column.doc, cells.map(|cell| cell.and_then(number))),
    }?;
    Some(if column.kind == CellKind::Flag { PackedColumn { kind: "flag", ..found } } else { found })
}

/// Strips code marks and link targets from Markdown.
fn strip_markdown(markdown: &'static str) -> Cow<'static, str> {
    if !markdown.contains(['`', '[']) {
        return markdown.into();
    }
    let mut plain = String::new();
    let mut rest = markdown;
    while let Some((before, (text, after))) =
        rest.split_once('[').and_then(|(before, link)| Some((before, link.split_once("](")?)))
    {
        plain += before;
        plain += text;
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    (plain + rest).replace('`', "").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoredRun;
    use crate::record::{Estimate, Roofline};
    use crate::{Case, Status};
    use serde_json::{Value, json};

    fn run(name: &str, records: Vec<Record>) -> ReportedRun {
        let read = StoredRun { header: None, resumed: vec![], records };
        ReportedRun { name: name.into(), dir: "gone".into(), read, windows: HashMap::new(), means: vec![] }
    }

    fn columns(runs: &[ReportedRun]) -> Vec<Value> {
        let Value::Array(columns) = serde_json::to_value(pack_columns(runs, Path::new("."))).unwrap() else { panic!() };
        columns
    }

    fn column<'a>(columns: &'a [Value], name: &str) -> &'a Value {
        columns.iter().find(|column| column["name"] == name).unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn columns_store_unique_texts_and_rounded_numbers() {
        let record = |recipe: &str, nanos: f64, axis: &'static str| {
            let case = Case { recipe: recipe.parse().unwrap(), shape: [(axis, 7)].into(), ..Case::default() };
            let mut record = Record::new(case, Status::Ok);
            record.time.time_ns = Some(Estimate { median: nanos, lo: None, hi: None });
            record.time.converged = Some(true);
            record
        };
        let mut first = record("int8wo", 1.23456789e-3, "m");
        let roofline = Roofline { peak_gbps: Some(100.0), ..Roofline::default() };
        first.rates.roofline = Some(Box::new(roofline));
        let runs =
            [run("a", vec![first, record("mxfp8", 1000.0, "batch")]), run("b", vec![record("int8wo", 12.0, "m")])];
        let columns = columns(&runs);
        let recipe = column(&columns, "recipe");
        assert_eq!((&recipe["words"], &recipe["at"]), (&json!(["int8wo", "mxfp8"]), &json!([0, 1, 0])));
        assert_eq!(column(&columns, "run")["words"], json!(["a", "b"]));
        assert_eq!(column(&columns, "time_ns")["numbers"].to_string(), "[0.00123457,1000,12]");
        assert_eq!(column(&columns, "converged")["kind"], "flag");
        let batch = column(&columns, "batch");
        assert_eq!((&batch["kind"], &batch["numbers"]), (&json!("axis"), &json!([null, 7, null])));
        assert_eq!(column(&columns, "peak_gbps")["numbers"], json!([100, null, null]));
        // Columns without values are omitted, and axes occur once.
        let names: Vec<&str> = columns.iter().map(|column| column["name"].as_str().unwrap()).collect();
        assert!(!names.contains(&"sqnr_db") && !names.contains(&"windows"), "{names:?}");
        assert_eq!(names.iter().filter(|name| **name == "m").count(), 1);
    }

    #[test]
    fn column_documentation_has_no_markup() {
        assert_eq!(
            strip_markdown("`fused` where: see [Method](method.md#a) or [`b`](c.md), `d`"),
            "fused where: see Method or b, d"
        );
        assert_eq!(strip_markdown("an [ and no link"), "an [ and no link");
    }
}
