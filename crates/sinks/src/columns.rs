//! The columns of a table of records: for each its name, what it means, and how it is read. A new column is one entry.
//!
//! Every table has the same columns in the same order, whatever its records hold, so that tables of different runs can be
//! put under one another. What was not measured is an empty cell.

mod list;
mod read;
mod reference;

pub use list::{COLUMNS, JOURNAL_ONLY};
pub use reference::markdown;

use std::borrow::Cow;

use crate::record::{Record, finite};

/// A column of `results.csv` and `results.parquet`.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its head.
    pub name: &'static str,
    /// The field of the record's JSON that it is read from, with dots where that is inside another one.
    pub field: &'static str,
    /// The unit of its numbers; empty where they have none.
    pub unit: &'static str,
    /// What stands in it, in Markdown.
    pub doc: &'static str,
    /// How it is read from a record.
    pub read: Read,
}

/// How a cell is read, which says what kind of cells the column has. `None` was not measured.
#[derive(Clone, Copy, Debug)]
pub enum Read {
    /// Text that stands in the record.
    Text(for<'a> fn(&'a Record) -> Option<&'a str>),
    /// Text that is made from several values.
    Written(fn(&Record) -> Option<String>),
    /// A whole number.
    Count(fn(&Record) -> Option<u64>),
    /// A number.
    Number(fn(&Record) -> Option<f64>),
    /// Yes or no.
    Flag(fn(&Record) -> Option<bool>),
}

/// What stands in one cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Text, which may be empty.
    Text(Cow<'a, str>),
    /// A whole number.
    Count(u64),
    /// A number, which is finite.
    Number(f64),
    /// Yes or no.
    Flag(bool),
}

impl Column {
    /// The cell of this record, or `None` where that was not measured.
    pub fn cell<'a>(&self, record: &'a Record) -> Option<Cell<'a>> {
        match self.read {
            Read::Text(read) => read(record).map(|text| Cell::Text(text.into())),
            Read::Written(read) => read(record).map(|text| Cell::Text(text.into())),
            Read::Count(read) => read(record).map(Cell::Count),
            Read::Number(read) => read(record).and_then(finite).map(Cell::Number),
            Read::Flag(read) => read(record).map(Cell::Flag),
        }
    }

    /// The kind of its cells in a word, with the unit.
    pub fn kind(&self) -> String {
        let kind = match self.read {
            Read::Text(_) | Read::Written(_) => "text",
            Read::Count(_) => "whole number",
            Read::Number(_) => "number",
            Read::Flag(_) => "true or false",
        };
        if self.unit.is_empty() { kind.to_owned() } else { format!("{kind}, {}", self.unit) }
    }
}

/// A field of the record's JSON that no column shows.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Where it stands, with dots where that is inside another one.
    pub name: &'static str,
    /// Its kind in words, with the unit.
    pub kind: &'static str,
    /// What stands in it, in Markdown.
    pub doc: &'static str,
}
