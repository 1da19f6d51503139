//! `csv`: one shape per row of a file with the columns m, k and n in any order, and optionally a name.

use crate::parameter::{Parameter, ParameterKind};
use crate::{Generator, MAX_SHAPES, NamedShape, Shape, ShapeError};
use ::csv::{ReaderBuilder, StringRecord, Trim};
use calorimeter_case::read_text;
use std::path::Path;

const PATH: Parameter = Parameter {
    name: "path",
    about: "a CSV file with the columns m, k, n and optionally name; relative to the configuration file",
    kind: ParameterKind::Path,
};

/// Enough for a million shapes with names of forty letters.
const MAX_FILE_BYTES: u64 = 64 << 20;

const COLUMNS: [&str; 4] = ["m", "k", "n", "name"];

pub(super) static CSV: Generator = Generator {
    name: "csv",
    about: "one shape per row of a file",
    parameters: &[PATH],
    count: |_| Ok(None),
    shapes: |settings, base| read_csv(&base.join(settings.path(&PATH))),
};

fn read_csv(path: &Path) -> Result<Vec<NamedShape>, ShapeError> {
    let unreadable = |cause: String| ShapeError::Unreadable { path: path.into(), cause };
    let line_error = |line, cause| ShapeError::Line { path: path.into(), line, cause: Box::new(cause) };
    let text = read_text(path, MAX_FILE_BYTES).map_err(|error| unreadable(error.to_string()))?;

    let mut reader = ReaderBuilder::new().trim(Trim::All).flexible(true).from_reader(text.as_bytes());
    let columns = reader.headers().map_err(|error| unreadable(error.to_string()))?;
    let columns = CsvColumns::find(columns).map_err(|cause| line_error(1, cause))?;
    let mut made: Vec<NamedShape> = Vec::new();
    let mut row = StringRecord::new();
    while reader.read_record(&mut row).map_err(|error| unreadable(error.to_string()))? {
        if made.len() as u64 == MAX_SHAPES {
            let count = u128::from(MAX_SHAPES) + 1 + reader.byte_records().count() as u128;
            let narrow = "split the file".to_owned();
            return Err(ShapeError::TooMany { what: path.display().to_string(), count, narrow });
        }
        let named = columns.read(&row, made.len()).map_err(|cause| line_error(line_number(&text, &row), cause))?;
        made.push(named);
    }
    if made.is_empty() {
        return Err(line_error(1, ShapeError::NoRows));
    }
    Ok(made)
}

/// Line number of a row. The reader's own position precedes blank lines and the second half of `\r\n`.
fn line_number(text: &str, row: &StringRecord) -> u64 {
    let from = row.position().map_or(0, |position| position.byte() as usize);
    let bytes = text.as_bytes();
    let blank = bytes[from..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    1 + bytes[..from + blank].iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Positions of the columns in a row.
struct CsvColumns {
    len: usize,
    sizes: [usize; 3],
    name: Option<usize>,
}

impl CsvColumns {
    fn find(header: &StringRecord) -> Result<Self, ShapeError> {
        let mut cells = header.iter().map(str::to_lowercase);
        if let Some(found) = cells.find(|cell| !COLUMNS.contains(&cell.as_str())) {
            return Err(ShapeError::Unknown { what: "column", found, known: COLUMNS.to_vec() });
        }
        // A header with more cells than valid names contains a duplicate among the first of them.
        let header: Vec<String> = header.iter().take(COLUMNS.len() + 1).map(str::to_lowercase).collect();
        let position = |column: &str| {
            let mut positions = (0..header.len()).filter(|&i| header[i] == column);
            match (positions.next(), positions.next()) {
                (_, Some(_)) => Err(ShapeError::DuplicateName { name: column.to_owned() }),
                (position, None) => Ok(position),
            }
        };
        let size = |column: &'static str| position(column)?.ok_or(ShapeError::MissingColumn { column });
        Ok(Self { len: header.len(), sizes: [size("m")?, size("k")?, size("n")?], name: position("name")? })
    }

    fn read(&self, row: &StringRecord, index: usize) -> Result<NamedShape, ShapeError> {
        if row.len() != self.len {
            return Err(ShapeError::FieldCount { found: row.len(), header: self.len });
        }
        let [m, k, n] = self.sizes.map(|position| &row[position]);
        let shape = Shape::new(parse_size("m", m)?, parse_size("k", k)?, parse_size("n", n)?)?;
        let name = self.name.map(|position| &row[position]).filter(|name| !name.is_empty());
        Ok(NamedShape { name: name.map_or_else(|| format!("csv_{index}"), str::to_owned).into(), shape })
    }
}

fn parse_size(axis: &str, cell: &str) -> Result<u64, ShapeError> {
    cell.parse().map_err(|_| crate::shape::size_bounds(axis).reject(format_args!("{cell:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ShapeSource;
    use std::fs;

    /// Shapes of a file with this text.
    fn shapes_of(text: &str) -> Result<Vec<String>, ShapeError> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("shapes.csv"), text).unwrap();
        let source: ShapeSource = serde_yaml::from_str("{name: csv, path: shapes.csv}").unwrap();
        assert_eq!(source.count(), None);
        let made = source.shapes_in(folder.path())?;
        Ok(made.iter().map(|s| format!("{} {}", s.name, s.shape)).collect())
    }

    #[test]
    fn column_order_is_free_and_name_optional() {
        for (text, expected) in [
            ("m,k,n\n1,2,3\n4,5,6\n", ["csv_0 m1-k2-n3", "csv_1 m4-k5-n6"]),
            ("n, K ,m\r\n3,2,1\r\n\r\n 6 ,5,4", ["csv_0 m1-k2-n3", "csv_1 m4-k5-n6"]),
            ("\u{feff}name,m,k,n\nmlp.up,1,2,3\n,4,5,6\n", ["mlp.up m1-k2-n3", "csv_1 m4-k5-n6"]),
        ] {
            assert_eq!(shapes_of(text).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn errors_report_the_line() {
        let number = |axis: &str, cell: &str| crate::shape::size_bounds(axis).reject(cell);
        for (text, expected_line, expected) in [
            ("m,k,n\n1,2,3\n1,0,3\n", 3, number("k", "0")),
            ("m,k,n\n\n1,x,3\n", 3, number("k", "\"x\"")),
            ("\u{feff}m,k,n\r\n1,2,3\r\n\r\n1,x,3\r\n", 4, number("k", "\"x\"")),
            ("m,k,n\n1,2\n", 2, ShapeError::FieldCount { found: 2, header: 3 }),
            ("m,k,n\n1,2,3.5\n", 2, number("n", "\"3.5\"")),
            ("m,k\n1,2\n", 1, ShapeError::MissingColumn { column: "n" }),
            (
                "m,k,n,nam\n",
                1,
                ShapeError::Unknown { what: "column", found: "nam".into(), known: vec!["m", "k", "n", "name"] },
            ),
            ("m,k,n,m\n", 1, ShapeError::DuplicateName { name: "m".into() }),
            ("m,k,n\n", 1, ShapeError::NoRows),
        ] {
            let error = shapes_of(text).unwrap_err();
            let ShapeError::Line { path, line, cause } = error else { panic!("{text:?}: {error:?}") };
            assert!(path.ends_with("shapes.csv"), "{path:?}");
            assert_eq!((line, *cause), (expected_line, expected), "{text:?}");
        }
    }

    #[test]
    fn errors_abbreviate_long_text() {
        for text in [format!("m,k,n,{}\n", "no".repeat(5_000)), format!("m,k,n\n1,2,{}\n", "7".repeat(10_000))] {
            let error = shapes_of(&text).unwrap_err().to_string().replace(std::env::temp_dir().to_str().unwrap(), "");
            assert!(error.len() < 300 && error.contains("[…]"), "{error}");
        }
    }

    #[test]
    fn missing_file_is_reported() {
        let source: ShapeSource = serde_yaml::from_str("{name: csv, path: nowhere.csv}").unwrap();
        let error = source.shapes_in(Path::new("/no/folder")).unwrap_err();
        assert!(
            matches!(&error, ShapeError::Unreadable { path, .. } if path == Path::new("/no/folder/nowhere.csv")),
            "{error:?}"
        );
    }

    #[test]
    fn endless_file_is_rejected() {
        let source: ShapeSource = serde_yaml::from_str("{name: csv, path: zero}").unwrap();
        let cause = calorimeter_case::too_large_error(MAX_FILE_BYTES, "such a file").to_string();
        assert_eq!(
            source.shapes_in(Path::new("/dev")),
            Err(ShapeError::Unreadable { path: "/dev/zero".into(), cause })
        );
    }

    #[test]
    fn too_many_rows_are_rejected() {
        let text = format!("m,k,n\n{}", "1,1,1\n".repeat(1_000_007));
        let error = shapes_of(&text).unwrap_err();
        assert!(matches!(error, ShapeError::TooMany { count: 1_000_007, .. }), "{error:?}");
    }
}
