//! Table columns: name, meaning, and how a cell is read from a facet.

use super::number::finite;
use serde::Serialize;
use std::borrow::{Borrow, Cow};

/// A column of facet `F`.
#[derive(Debug)]
pub struct Column<F: 'static> {
    /// Column header.
    pub name: &'static str,
    /// Field of the record's JSON that the column is read from; dots separate nested fields.
    pub field: &'static str,
    /// Unit of the values; empty if they have none.
    pub unit: &'static str,
    /// Meaning, in Markdown.
    pub doc: &'static str,
    /// Accessor.
    pub read: CellReader<F>,
}

/// Accessor of a cell, which also determines the kind of the column. `None` means not measured.
#[derive(Debug)]
#[non_exhaustive]
pub enum CellReader<F: 'static> {
    /// Text stored in the facet.
    Text(for<'a> fn(&'a F) -> Option<&'a str>),
    /// Text formatted from several values.
    Written(fn(&F) -> Option<String>),
    /// Unsigned integer.
    Count(fn(&F) -> Option<u64>),
    /// Floating-point value.
    Number(fn(&F) -> Option<f64>),
    /// Boolean.
    Flag(fn(&F) -> Option<bool>),
}

/// Value of one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell<'a> {
    /// Text, possibly empty.
    Text(Cow<'a, str>),
    /// Unsigned integer.
    Count(u64),
    /// Finite floating-point value.
    Number(f64),
    /// Boolean.
    Flag(bool),
}

/// Kind of the cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// [`Cell::Text`]
    Text,
    /// [`Cell::Count`]
    Count,
    /// [`Cell::Number`]
    Number,
    /// [`Cell::Flag`]
    Flag,
}

impl<F> Column<F> {
    /// Cell of a facet, or `None` if it was not measured.
    pub fn cell<'a>(&self, facet: &'a F) -> Option<Cell<'a>> {
        match self.read {
            CellReader::Text(read) => read(facet).map(|text| Cell::Text(text.into())),
            CellReader::Written(read) => read(facet).map(|text| Cell::Text(text.into())),
            CellReader::Count(read) => read(facet).map(Cell::Count),
            CellReader::Number(read) => read(facet).and_then(finite).map(Cell::Number),
            CellReader::Flag(read) => read(facet).map(Cell::Flag),
        }
    }

    /// Kind of the cells.
    pub fn kind(&self) -> CellKind {
        match self.read {
            CellReader::Text(_) | CellReader::Written(_) => CellKind::Text,
            CellReader::Count(_) => CellKind::Count,
            CellReader::Number(_) => CellKind::Number,
            CellReader::Flag(_) => CellKind::Flag,
        }
    }
}

/// Columns of a facet: name, JSON field if its path differs from the name, unit if any, accessor, and meaning.
macro_rules! columns {
    (|$facet:ident| $($name:literal $(from $field:literal)? $(in $unit:literal)?:
        $kind:ident($read:expr), $doc:literal;)*) => {
        &[$($crate::record::Column {
            name: $name,
            field: columns!(@first $($field,)? $name),
            unit: columns!(@first $($unit,)? ""),
            doc: $doc,
            read: $crate::record::CellReader::$kind(|$facet| $read),
        },)*]
    };
    (@first $first:literal $(, $default:literal)?) => { $first };
}
pub(crate) use columns;

/// Fields of a facet without a column: path, type in words, and meaning.
macro_rules! fields {
    ($($name:literal: $kind:literal, $doc:literal;)*) => {
        &[$($crate::record::Field { name: $name, kind: $kind, doc: $doc },)*]
    };
}
pub(crate) use fields;

/// A field of the record's JSON without a column.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Path in the JSON; dots separate nested fields.
    pub name: &'static str,
    /// Type in words, with the unit.
    pub kind: &'static str,
    /// Meaning, in Markdown.
    pub doc: &'static str,
}

/// Returns the list, or `None` if it is empty.
pub(super) fn nonempty<T>(list: &[T]) -> Option<&[T]> {
    (!list.is_empty()).then_some(list)
}

/// Joins the list with `; `, or returns `None` if it is empty.
pub(super) fn join_nonempty<T: Borrow<str>>(list: &[T]) -> Option<String> {
    nonempty(list).map(|list| list.join("; "))
}
