//! `results.csv`: the [columns](crate::columns) for spreadsheets and scripts. Empty cells were not measured; empty text
//! is quoted.

use std::borrow::Cow;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use crate::columns::{COLUMNS, Cell, RecordColumn};
use crate::record::Record;
use crate::sink::{Sink, SinkInput};
use crate::spreadsheet::escape_formula;
use crate::{SinkError, atomic};

/// Writes `results.csv` to the directory of the run.
pub struct Csv;

impl Sink for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn write(&self, run: &SinkInput) -> Result<Vec<PathBuf>, SinkError> {
        let path = run.dir.join("results.csv");
        atomic::write_with(&path, |file| {
            let mut file = BufWriter::new(file);
            let mut put =
                |line: String| file.write_all(line.as_bytes()).map_err(|cause| SinkError::write(&path, cause));
            put(header())?;
            run.records_with_series().try_for_each(|record| put(line(&*record?)))?;
            file.flush().map_err(|cause| SinkError::write(&path, cause))
        })?;
        Ok(vec![path])
    }
}

// Lines are formatted here because the crate `csv` does not distinguish empty text from an empty cell.

/// All [columns](COLUMNS) except lists of times, which would be 90 % of the file; Parquet and the journal have them.
fn columns() -> impl Iterator<Item = &'static RecordColumn> {
    COLUMNS.iter().filter(|column| !OMITTED_LISTS.contains(&column.name))
}

const OMITTED_LISTS: [&str; 3] = ["windows", "of_processes_ns", "of_places_ns"];

fn header() -> String {
    columns().map(|column| column.name).collect::<Vec<_>>().join(",") + "\n"
}

fn line(record: &Record) -> String {
    let cells = columns().map(|column| column.cell(record).map_or(Cow::Borrowed(""), cell_text));
    cells.collect::<Vec<_>>().join(",") + "\n"
}

fn cell_text(cell: Cell<'_>) -> Cow<'_, str> {
    match cell {
        Cell::Text(text) => quote(escape_formula(text)),
        Cell::Count(count) => count.to_string().into(),
        // Shortest digits that parse to an equal number.
        Cell::Number(number) => serde_json::Value::from(number).to_string().into(),
        Cell::Flag(flag) => if flag { "true" } else { "false" }.into(),
    }
}

/// Quotes text if CSV requires it.
fn quote(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.is_empty() || text.contains(['"', ',', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\"")).into();
    }
    text
}
