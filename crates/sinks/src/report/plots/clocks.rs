//! Clock, power, temperature and throttling of the cases.

use super::bars::{Bars, Column, Length, Line};
use super::figures::{digits, percent};
use super::picture::Picture;
use super::rows::{Rows, grouped, median};
use crate::columns::{COLUMNS, Cell};
use crate::record::Record;

pub(super) fn picture(rows: &Rows<'_>) -> Option<Picture> {
    let told = rows.with(|record| FIGURES.iter().any(|(name, ..)| number(name, record).is_some()));
    let lines: Vec<Line> = grouped(told.into_iter(), |row| format!("{} · {}", row.record.case.device, row.who()))
        .into_iter()
        .map(|(name, group)| {
            let middle = |name| median(group.iter().filter_map(|row| number(name, row.record)));
            let figures = FIGURES.map(|(name, _, write)| middle(name).map(|figure| (figure, write(figure))));
            Line { name, figures: figures.into() }
        })
        .collect();
    let columns = FIGURES.map(|(_, head, _)| Column { head: head.into(), length: Length::Amount }).into();
    let title = "Clocks and power: median over the cases".into();
    (!lines.is_empty()).then(|| Picture::Bars(Bars { title, columns, lines }.without_empty()))
}

type Figure = (&'static str, &'static str, fn(f64) -> String);

const FIGURES: [Figure; 5] = [
    ("clock_mhz", "clock", |mhz| format!("{} MHz", digits(mhz, 4))),
    ("memory_clock_mhz", "memory clock", |mhz| format!("{} MHz", digits(mhz, 4))),
    ("power_w", "power", |watts| format!("{} W", digits(watts, 3))),
    ("temperature_c", "temperature", |degrees| format!("{} °C", digits(degrees, 3))),
    ("held_back", "throttled windows", |share| percent(100.0 * share)),
];

/// Value of a column.
fn number(name: &str, record: &Record) -> Option<f64> {
    let column = COLUMNS.iter().find(|column| column.name == name)?;
    match column.cell(record)? {
        Cell::Number(number) => Some(number),
        Cell::Count(count) => Some(count as f64),
        Cell::Text(_) | Cell::Flag(_) => None,
    }
}
