//! Records of a report as plotted: series by recipe or operator and implementation.

use std::collections::HashMap;
use std::hash::Hash;

use calorimeter_case::Implementation;

use super::derived_columns::{item, item_and_implementation};
use super::plots::chart::{ChartPoint, ChartSeries, SeriesEmphasis};
use super::plots::palette::SeriesStyle;
use super::run::{ReportedRun, records};
use crate::record::Record;

/// Records of all runs.
pub(super) struct ReportRows<'a> {
    /// Measured records.
    pub(super) measured: Vec<ReportRow<'a>>,
    /// All records.
    pub(super) all: Vec<&'a Record>,
    rows: Vec<ReportRow<'a>>,
    items: Vec<String>,
    implementations: Vec<Implementation>,
}

/// Record with the name of its run, if there are several runs.
#[derive(Clone, Copy)]
pub(super) struct ReportRow<'a> {
    pub(super) run: Option<&'a str>,
    pub(super) record: &'a Record,
}

impl<'a> ReportRows<'a> {
    pub(super) fn new(runs: &'a [ReportedRun]) -> Self {
        let of_run = |run: &'a ReportedRun| {
            run.read.records.iter().map(|record| ReportRow { run: (runs.len() > 1).then_some(&run.name), record })
        };
        let rows: Vec<ReportRow> = runs.iter().flat_map(of_run).collect();
        let measured: Vec<ReportRow> = rows.iter().copied().filter(|row| row.record.is_ok()).collect();
        let items = distinct(measured.iter().map(|row| item(row.record))).into_iter().filter(|item| item != "baseline");
        let implementations = distinct(measured.iter().map(|row| row.record.case.implementation));
        Self { items: items.collect(), implementations, measured, all: records(runs).collect(), rows }
    }

    /// Measured rows that fulfill a condition.
    pub(super) fn filtered(&self, has: impl Fn(&Record) -> bool) -> Vec<ReportRow<'a>> {
        self.measured.iter().copied().filter(|row| has(row.record)).collect()
    }

    /// All rows with their indices.
    pub(super) fn indexed(&self) -> impl Iterator<Item = (usize, ReportRow<'a>)> {
        self.rows.iter().copied().enumerate()
    }

    /// Axes of all shapes.
    pub(super) fn axes(&self) -> Vec<&'a str> {
        distinct(self.all.iter().flat_map(|record| record.case.shape.iter().map(|(axis, _)| axis)))
    }

    /// Style of a series: color by recipe or operator, marker by implementation, consistent over all plots.
    pub(super) fn style(&self, record: &Record) -> SeriesStyle {
        let (item, implementation) = (item(record), record.case.implementation);
        SeriesStyle {
            item: self.items.iter().position(|known| *known == item),
            marker: self.implementations.iter().position(|known| *known == implementation).unwrap_or(0),
        }
    }

    /// Returns a series per recipe or operator and implementation; rows without a point are omitted.
    pub(super) fn series(
        &self,
        rows: &[ReportRow<'a>],
        point: impl Fn(ReportRow<'a>) -> Option<ChartPoint>,
    ) -> Vec<ChartSeries> {
        let groups = group_by(rows.iter().copied(), |row| item_and_implementation(row.record));
        let series = groups.into_iter().map(|(name, rows)| ChartSeries {
            name,
            style: self.style(rows[0].record),
            points: rows.into_iter().filter_map(&point).collect(),
            emphasis: SeriesEmphasis::Plain,
            tips: Vec::new(),
        });
        series.filter(|series| !series.points.is_empty()).collect()
    }
}

/// True for models, false for operators.
pub(super) fn is_model(record: &Record) -> bool {
    !record.case.mode.is_operator()
}

/// Speed-up, if positive.
pub(super) fn speedup(record: &Record) -> Option<f64> {
    record.speedup.as_ref().map(|speedup| speedup.ratio).filter(|ratio| *ratio > 0.0)
}

/// Median time of one pass, if positive.
pub(super) fn nanos(record: &Record) -> Option<f64> {
    record.time.time_ns.map(|time| time.median).filter(|nanos| *nanos > 0.0)
}

/// Distinct values in order of first occurrence.
pub(super) fn distinct<T: Clone + Eq + Hash>(values: impl Iterator<Item = T>) -> Vec<T> {
    group_by(values, Clone::clone).into_iter().map(|(value, _)| value).collect()
}

/// Groups items by key, in order of first occurrence.
pub(super) fn group_by<T, K: Clone + Eq + Hash>(
    items: impl Iterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    let mut places: HashMap<K, usize> = HashMap::new();
    for item in items {
        let key = key(&item);
        let place = *places.entry(key.clone()).or_insert(groups.len());
        if place == groups.len() {
            groups.push((key, Vec::new()));
        }
        groups[place].1.push(item);
    }
    groups
}

/// Geometric mean, if there are values.
pub(super) fn geometric_mean(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = ratios.filter(|ratio| *ratio > 0.0).map(f64::ln).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

/// Median, if there are values.
pub(super) fn median(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_unstable_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(figures[middle]),
        _ => Some((figures[middle - 1] + figures[middle]) / 2.0),
    }
}
