//! A column of a table: its name, what it means, and how it is read from the facet that it belongs to.

use super::number::finite;
use std::borrow::Cow;

/// A column that shows something of a facet `F`.
#[derive(Debug)]
pub struct Column<F: 'static> {
    /// Its head.
    pub name: &'static str,
    /// The field of the record's JSON that it is read from, with dots where that is inside another one.
    pub field: &'static str,
    /// The unit of its numbers; empty where they have none.
    pub unit: &'static str,
    /// What stands in it, in Markdown.
    pub doc: &'static str,
    /// How it is read from the facet.
    pub read: Read<F>,
}

/// How a cell is read, which says what kind of cells the column has. `None` was not measured.
#[derive(Debug)]
#[non_exhaustive]
pub enum Read<F: 'static> {
    /// Text that stands in the facet.
    Text(for<'a> fn(&'a F) -> Option<&'a str>),
    /// Text that is made from several values.
    Written(fn(&F) -> Option<String>),
    /// A whole number.
    Count(fn(&F) -> Option<u64>),
    /// A number.
    Number(fn(&F) -> Option<f64>),
    /// Yes or no.
    Flag(fn(&F) -> Option<bool>),
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

/// What all cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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
    /// The cell of this facet, or `None` where that was not measured.
    pub fn cell<'a>(&self, facet: &'a F) -> Option<Cell<'a>> {
        match self.read {
            Read::Text(read) => read(facet).map(|text| Cell::Text(text.into())),
            Read::Written(read) => read(facet).map(|text| Cell::Text(text.into())),
            Read::Count(read) => read(facet).map(Cell::Count),
            Read::Number(read) => read(facet).and_then(finite).map(Cell::Number),
            Read::Flag(read) => read(facet).map(Cell::Flag),
        }
    }

    /// What its cells are.
    pub fn kind(&self) -> Kind {
        match self.read {
            Read::Text(_) | Read::Written(_) => Kind::Text,
            Read::Count(_) => Kind::Count,
            Read::Number(_) => Kind::Number,
            Read::Flag(_) => Kind::Flag,
        }
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

/// The list, if anything is in it.
pub(super) fn some<T>(list: &[T]) -> Option<&[T]> {
    (!list.is_empty()).then_some(list)
}

/// The list as one text, or nothing where it is empty.
pub(super) fn joined(list: &[String]) -> Option<String> {
    some(list).map(|list| list.join("; "))
}
