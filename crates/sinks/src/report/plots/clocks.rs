//! Clock, power, temperature and throttling of the cases.

use super::bars::{BarColumn, BarLength, BarRow, BarTable};
use super::number_format::{digits, percent};
use super::picture::Picture;
use super::report_rows::{ReportRows, group_by, median};
use crate::columns::{COLUMNS, Cell};
use crate::record::Record;

pub(super) fn picture(rows: &ReportRows<'_>) -> Option<Picture> {
    let told = rows.filtered(|record| METRICS.iter().any(|(name, ..)| column_value(name, record).is_some()));
    let lines: Vec<BarRow> =
        group_by(told.into_iter(), |row| format!("{} · {}", row.record.case.device, row.item_and_implementation()))
            .into_iter()
            .map(|(name, group)| {
                let middle = |name| median(group.iter().filter_map(|row| column_value(name, row.record)));
                let figures = METRICS.map(|(name, _, write)| middle(name).map(|figure| (figure, write(figure))));
                BarRow { name, values: figures.into() }
            })
            .collect();
    let columns = METRICS.map(|(_, head, _)| BarColumn { header: head.into(), length: BarLength::Amount }).into();
    let title = "Clocks and power: median over the cases".into();
    (!lines.is_empty()).then(|| Picture::Bars(BarTable { title, columns, rows: lines }.without_empty_columns()))
}

type ClockMetric = (&'static str, &'static str, fn(f64) -> String);

const METRICS: [ClockMetric; 5] = [
    ("clock_mhz", "clock", |mhz| format!("{} MHz", digits(mhz, 4))),
    ("memory_clock_mhz", "memory clock", |mhz| format!("{} MHz", digits(mhz, 4))),
    ("power_w", "power", |watts| format!("{} W", digits(watts, 3))),
    ("temperature_c", "temperature", |degrees| format!("{} °C", digits(degrees, 3))),
    ("held_back", "throttled windows", |share| percent(100.0 * share)),
];

/// Value of a column.
fn column_value(name: &str, record: &Record) -> Option<f64> {
    let column = COLUMNS.iter().find(|column| column.name == name)?;
    match column.cell(record)? {
        Cell::Number(number) => Some(number),
        Cell::Count(count) => Some(count as f64),
        Cell::Text(_) | Cell::Flag(_) => None,
    }
}
