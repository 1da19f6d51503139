//! Records as a data frame with one row per case, for joins, grouping and plots. In the feature `tables`.

mod read;

pub use read::read_records;

use polars::prelude::{AnyValue, Column, DataFrame, DataType, PolarsResult, Series};

use crate::columns::{COLUMNS, Cell, CellKind};
use crate::record::Record;

/// Builds the data frame of all [columns](crate::columns).
///
/// Lists become text: axes `m1024-k512-n256`, windows `launches:nanos;…`, warnings `…; …`. Unmeasured values are null.
pub fn data_frame(records: &[Record]) -> PolarsResult<DataFrame> {
    let columns = COLUMNS.iter().map(|column| {
        let cells: Vec<AnyValue> = records.iter().map(|record| value(column.cell(record))).collect();
        Ok(Column::from(Series::from_any_values_and_dtype(column.name.into(), &cells, &data_type(column.kind), true)?))
    });
    DataFrame::new(records.len(), columns.collect::<PolarsResult<_>>()?)
}

fn value(cell: Option<Cell<'_>>) -> AnyValue<'_> {
    match cell {
        None => AnyValue::Null,
        Some(Cell::Text(text)) => AnyValue::StringOwned(text.as_ref().into()),
        Some(Cell::Count(count)) => AnyValue::UInt64(count),
        Some(Cell::Number(number)) => AnyValue::Float64(number),
        Some(Cell::Flag(flag)) => AnyValue::Boolean(flag),
    }
}

fn data_type(kind: CellKind) -> DataType {
    match kind {
        CellKind::Text => DataType::String,
        CellKind::Count => DataType::UInt64,
        CellKind::Number => DataType::Float64,
        CellKind::Flag => DataType::Boolean,
    }
}
