//! Rows of `csv_shapes` files. Each row is a set of parameters.

use crate::dialects::accelerator::sweep::{ParameterPairs, ParameterValue};
use crate::entries::{ConfigError, MAX_ENTRIES};
use calorimeter_case::read_text;
use csv::{ReaderBuilder, Trim};
use std::path::{Path, PathBuf};

/// Maximum size of a file with shapes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Parameters of a row, with the line of the row.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ShapeRow {
    pub line: u64,
    pub parameters: ParameterPairs,
}

/// Finds a file in the folder of the configuration file, the closest folder above it, or the working directory.
pub(super) fn locate(path: &str, config: &Path) -> Result<PathBuf, String> {
    if path.contains("://") {
        return Err(format!("cannot read {path}: download the file, and write the path of the copy"));
    }
    let folders = config.ancestors().skip(1).chain([Path::new("")]);
    let found = folders.map(|folder| folder.join(path)).find(|path| path.is_file());
    let searched = "the folder of this file, the folders above it, and the working directory";
    found.ok_or_else(|| format!("found no file {path:?}; searched {searched}"))
}

/// Reads the rows of a file. Errors name the line.
pub(super) fn read_rows(path: &Path) -> Result<Vec<ShapeRow>, ConfigError> {
    let text = read_text(path, MAX_FILE_BYTES).map_err(|cause| ConfigError::Read { path: path.to_owned(), cause })?;
    let invalid =
        |line: u64, message: String| ConfigError::Invalid { path: path.to_owned(), place: format!(":{line}"), message };
    let syntax = |error: csv::Error| invalid(error.position().map_or(1, csv::Position::line), error.to_string());
    let mut reader = ReaderBuilder::new().trim(Trim::All).from_reader(text.as_bytes());
    let header = reader.headers().map_err(syntax)?.clone();
    let mut rows = Vec::new();
    for row in reader.records() {
        let row = row.map_err(syntax)?;
        let line = row.position().map_or(1, csv::Position::line);
        if let Some(place) = row.iter().position(str::is_empty) {
            return Err(invalid(line, format!("empty cell of {}; add a value", &header[place])));
        }
        let value =
            |cell: &str| cell.parse().map_or_else(|_| ParameterValue::Text(cell.into()), ParameterValue::Integer);
        let parameters = header.iter().zip(&row).map(|(name, cell)| (name.to_owned(), value(cell))).collect();
        rows.push(ShapeRow { line, parameters });
        if rows.len() > MAX_ENTRIES {
            return Err(invalid(line, format!("more than {MAX_ENTRIES} rows; split the file")));
        }
    }
    match rows.is_empty() {
        true => Err(invalid(1, "nothing to run: the file has no rows".into())),
        false => Ok(rows),
    }
}
