//! The records as one table, one row per case: the form in which other programs join, group and plot them. In the feature
//! `tables`.

use polars::prelude::{Column, DataFrame, NamedFrom, PolarsResult, Series};

use crate::columns::{COLUMNS, Read};
use crate::record::{Record, finite};

/// Builds the table of all [columns](crate::columns). Lists become text: axes `m1024-k512-n256`, windows
/// `launches:nanos;…`, warnings `…; …`. What was not measured is null.
pub fn data_frame(records: &[Record]) -> PolarsResult<DataFrame> {
    let columns = COLUMNS.iter().map(|column| {
        let name = column.name.into();
        let series = match column.read {
            Read::Text(read) => Series::new(name, cells(records, read)),
            Read::Written(read) => Series::new(name, cells(records, read)),
            Read::Count(read) => Series::new(name, cells(records, read)),
            Read::Number(read) => Series::new(name, cells(records, |record| read(record).and_then(finite))),
            Read::Flag(read) => Series::new(name, cells(records, read)),
        };
        Column::from(series)
    });
    DataFrame::new(records.len(), columns.collect())
}

fn cells<'a, T>(records: &'a [Record], read: impl Fn(&'a Record) -> Option<T>) -> Vec<Option<T>> {
    records.iter().map(read).collect()
}
