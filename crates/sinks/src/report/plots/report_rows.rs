//! Records of a report as plotted: series by recipe or operator and implementation.

use std::collections::HashMap;
use std::hash::Hash;

use calorimeter_case::{Implementation, Mode, variant};

use super::chart::{ChartPoint, ChartSeries, SeriesEmphasis};
use super::palette::SeriesStyle;
use crate::record::Record;
use crate::report::run::ReportedRun;

/// Records of all runs.
pub(super) struct ReportRows<'a> {
    /// Measured records.
    pub(super) measured: Vec<ReportRow<'a>>,
    /// All records.
    pub(super) all: Vec<ReportRow<'a>>,
    items: Vec<String>,
    implementations: Vec<Implementation>,
}

/// Record with the name of its run.
#[derive(Clone, Copy)]
pub(super) struct ReportRow<'a> {
    pub(super) run: &'a str,
    pub(super) record: &'a Record,
}

impl<'a> ReportRows<'a> {
    pub(super) fn new(runs: &'a [ReportedRun]) -> Self {
        let of_run = |run: &'a ReportedRun| run.read.records.iter().map(|record| ReportRow { run: &run.name, record });
        let all: Vec<ReportRow> = runs.iter().flat_map(of_run).collect();
        let measured: Vec<ReportRow> = all.iter().copied().filter(|row| row.record.is_ok()).collect();
        let whats = distinct(measured.iter().map(|row| row.item())).into_iter().filter(|what| what != "baseline");
        let implementations = distinct(measured.iter().map(|row| row.record.case.implementation));
        Self { items: whats.collect(), implementations, measured, all }
    }

    /// Measured rows that fulfill a condition.
    pub(super) fn filtered(&self, has: impl Fn(&Record) -> bool) -> Vec<ReportRow<'a>> {
        self.measured.iter().copied().filter(|row| has(row.record)).collect()
    }

    /// Axes of all shapes.
    pub(super) fn axes(&self) -> Vec<&'a str> {
        distinct(self.all.iter().flat_map(|row| row.record.case.shape.iter().map(|(axis, _)| axis)))
    }

    /// Style of a series: color by recipe or operator, marker by implementation, consistent over all plots.
    fn style(&self, row: ReportRow<'_>) -> SeriesStyle {
        let what = row.item();
        let place = self.items.iter().position(|known| *known == what);
        let kernels = row.record.case.implementation;
        SeriesStyle::new(place, self.implementations.iter().position(|known| *known == kernels).unwrap_or(0))
    }

    /// Returns a series per recipe or operator and implementation; rows without a point are omitted.
    pub(super) fn series(
        &self,
        rows: &[ReportRow<'a>],
        point: impl Fn(ReportRow<'a>) -> Option<ChartPoint>,
    ) -> Vec<ChartSeries> {
        let groups = group_by(rows.iter().copied(), |row| row.item_and_implementation());
        let series = groups.into_iter().map(|(name, rows)| ChartSeries {
            name,
            style: self.style(rows[0]),
            points: rows.into_iter().filter_map(&point).collect(),
            emphasis: SeriesEmphasis::Plain,
        });
        series.filter(|series| !series.points.is_empty()).collect()
    }
}

impl ReportRow<'_> {
    /// Compared item: the recipe of a model, or the name of an operator.
    pub(super) fn item(self) -> String {
        let case = &self.record.case;
        match case.mode {
            Mode::Operator(_) => case.workload.to_string(),
            Mode::Inference | Mode::Training => self.recipe(),
        }
    }

    /// Compared item and implementation.
    pub(super) fn item_and_implementation(self) -> String {
        format!("{} · {}", self.item(), self.record.case.implementation)
    }

    /// Recipe with sparsity and scaling.
    pub(super) fn recipe(self) -> String {
        let case = &self.record.case;
        let recipe = variant(case.recipe, case.sparsity);
        match case.scaling {
            Some(scaling) => format!("{recipe} {scaling}"),
            None => recipe,
        }
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
