//! Columns of record tables, in order. Each belongs to the facet that it shows, where new columns are added.
//!
//! Every table has these columns in this order, whatever its records hold, so that tables of several runs can be
//! concatenated. Unmeasured values are empty cells.

mod reference;

pub use crate::record::{Cell, CellKind, Field};
pub use reference::markdown;

use std::fmt;
use std::sync::LazyLock;

use crate::Case;
use crate::record::{
    Accuracy, Column, Execution, Footprint, Outcome, Preparation, Profile, Rates, Record, Speedup, Telemetry, Time,
    Traffic, Warnings, Weights,
};

/// Columns of `results.csv` and `results.parquet`, in order.
pub static COLUMNS: LazyLock<Vec<RecordColumn>> = LazyLock::new(|| {
    [
        lift_columns(Case::COLUMNS, |record| Some(&record.case)),
        lift_columns(Traffic::COLUMNS, |record| record.traffic.as_ref()),
        lift_columns(Case::REQUEST_COLUMNS, |record| Some(&record.case)),
        lift_columns(Outcome::COLUMNS, |record| Some(&record.outcome)),
        lift_columns(Execution::COLUMNS, |record| Some(&record.execution)),
        lift_columns(Time::COLUMNS, |record| Some(&record.time)),
        lift_columns(Speedup::COLUMNS, |record| record.speedup.as_ref()),
        lift_columns(Rates::COLUMNS, |record| Some(&record.rates)),
        lift_columns(Accuracy::COLUMNS, |record| record.accuracy.as_deref()),
        lift_columns(Weights::COLUMNS, |record| Some(&record.weights)),
        lift_columns(Footprint::COLUMNS, |record| Some(&record.footprint)),
        lift_columns(Telemetry::COLUMNS, |record| record.telemetry.as_deref()),
        lift_columns(Profile::COLUMNS, |record| Some(&record.profile)),
        lift_columns(Footprint::FILE_COLUMNS, |record| Some(&record.footprint)),
        lift_columns(Preparation::COLUMNS, |record| Some(&record.preparation)),
        lift_columns(Outcome::STDERR_COLUMNS, |record| Some(&record.outcome)),
        lift_columns(Warnings::COLUMNS, |record| Some(&record.warnings)),
    ]
    .into_iter()
    .flatten()
    .collect()
});

/// Fields of a record that no column shows, by facet.
pub static JOURNAL_ONLY: LazyLock<Vec<Field>> = LazyLock::new(|| {
    [
        Case::JOURNAL_ONLY,
        Outcome::JOURNAL_ONLY,
        Warnings::JOURNAL_ONLY,
        Execution::JOURNAL_ONLY,
        Accuracy::JOURNAL_ONLY,
        Time::JOURNAL_ONLY,
        Speedup::JOURNAL_ONLY,
        Rates::JOURNAL_ONLY,
        Footprint::JOURNAL_ONLY,
        Profile::JOURNAL_ONLY,
        Telemetry::JOURNAL_ONLY,
    ]
    .concat()
});

/// Column of `results.csv` and `results.parquet`: a column of a facet, and access to the facet of a record.
pub struct RecordColumn {
    /// Header.
    pub name: &'static str,
    /// Path of the field in the JSON of a record, with dots between nested fields.
    pub field: &'static str,
    /// Unit; empty if there is none.
    pub unit: &'static str,
    /// Documentation in Markdown.
    pub doc: &'static str,
    /// Type of the cells.
    pub kind: CellKind,
    read: Box<ReadCell>,
}

type ReadCell = dyn Fn(&Record) -> Option<Cell<'_>> + Send + Sync;

impl RecordColumn {
    /// Cell of a record; `None` if not measured.
    pub fn cell<'a>(&self, record: &'a Record) -> Option<Cell<'a>> {
        (self.read)(record)
    }

    /// Type of the cells in words, with the unit.
    pub fn type_description(&self) -> String {
        let kind = match self.kind {
            CellKind::Text => "text",
            CellKind::Count => "whole number",
            CellKind::Number => "number",
            CellKind::Flag => "true or false",
        };
        if self.unit.is_empty() { kind.to_owned() } else { format!("{kind}, {}", self.unit) }
    }
}

impl fmt::Debug for RecordColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordColumn").field("name", &self.name).field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Lifts the columns of a facet to columns of records.
pub(crate) fn lift_columns<F>(columns: &'static [Column<F>], facet: fn(&Record) -> Option<&F>) -> Vec<RecordColumn> {
    let lifted = columns.iter().map(|column| RecordColumn {
        name: column.name,
        field: column.field,
        unit: column.unit,
        doc: column.doc,
        kind: column.kind(),
        read: Box::new(move |record| facet(record).and_then(|facet| column.cell(facet))),
    });
    lifted.collect()
}
