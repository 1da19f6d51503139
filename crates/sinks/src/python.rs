//! Values and tables formatted as in Python.

use std::io::Write;

use crate::columns::Cell;
use crate::spreadsheet::escape_formula;

/// Column of a table: header and accessor.
pub(crate) type PythonColumn<R> = (&'static str, fn(&R) -> Option<Cell<'static>>);

/// Writes a table like Python's `csv.writer`, with its line ending on every system. Text that looks like a formula is
/// escaped.
pub(crate) fn write_csv<R>(
    columns: &[PythonColumn<R>],
    rows: impl Iterator<Item = R>,
    file: impl Write,
) -> Result<(), ::csv::Error> {
    let mut writer = ::csv::WriterBuilder::new().terminator(::csv::Terminator::CRLF).from_writer(file);
    writer.write_record(columns.iter().map(|(name, _)| name))?;
    for row in rows {
        writer.write_record(columns.iter().map(|(_, cell)| spreadsheet_text(cell(&row).as_ref())))?;
    }
    Ok(writer.flush()?)
}

/// Text cell.
pub(crate) fn text(value: impl ToString) -> Option<Cell<'static>> {
    Some(Cell::Text(value.to_string().into()))
}

/// Formats a cell as Python does; an unmeasured cell is empty.
pub(crate) fn format_cell(cell: Option<&Cell<'_>>) -> String {
    match cell {
        None => String::new(),
        Some(Cell::Text(text)) => text.to_string(),
        Some(Cell::Count(count)) => count.to_string(),
        Some(Cell::Number(number)) => format_float(*number),
        Some(Cell::Flag(flag)) => if *flag { "True" } else { "False" }.into(),
    }
}

/// Formats a cell of a table. User-defined names must not be interpreted as formulas.
pub(crate) fn spreadsheet_text(cell: Option<&Cell<'_>>) -> String {
    match cell {
        Some(Cell::Text(text)) => escape_formula(text.as_ref().into()).into_owned(),
        figure => format_cell(figure),
    }
}

/// Formats a float as Python's `repr`: the shortest digits that parse to an equal value.
pub(crate) fn format_float(value: f64) -> String {
    let scientific = format!("{value:e}");
    // `{:e}` always has an exponent, and Rust and Python agree on the shortest digits.
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => {
            let plain = value.to_string();
            if plain.contains('.') { plain } else { format!("{plain}.0") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_formatted_like_python() {
        for (value, text) in [
            (1.0, "1.0"),
            (0.0, "0.0"),
            (1.73, "1.73"),
            (0.1 + 0.2, "0.30000000000000004"),
            (0.0001, "0.0001"),
            (0.00001234, "1.234e-05"),
            (5e-324, "5e-324"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
        ] {
            assert_eq!(format_float(value), text);
        }
    }
}
