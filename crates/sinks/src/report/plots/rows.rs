//! Records of a report as plotted: series by recipe or operator and implementation.

use std::collections::HashMap;
use std::hash::Hash;

use calorimeter_case::{Implementation, Mode, variant};

use super::chart::{Point, Series, Weight};
use super::palette::Look;
use crate::record::Record;
use crate::report::run::ReportedRun;

/// Records of all runs.
pub(super) struct Rows<'a> {
    /// Measured records.
    pub(super) measured: Vec<Row<'a>>,
    /// All records.
    pub(super) all: Vec<Row<'a>>,
    whats: Vec<String>,
    kernels: Vec<Implementation>,
}

/// Record with the name of its run.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) run: &'a str,
    pub(super) record: &'a Record,
}

impl<'a> Rows<'a> {
    pub(super) fn of(runs: &'a [ReportedRun]) -> Self {
        let of_run = |run: &'a ReportedRun| run.read.records.iter().map(|record| Row { run: &run.name, record });
        let all: Vec<Row> = runs.iter().flat_map(of_run).collect();
        let measured: Vec<Row> = all.iter().copied().filter(|row| row.record.is_ok()).collect();
        let whats = distinct(measured.iter().map(|row| row.what())).into_iter().filter(|what| what != "baseline");
        let kernels = distinct(measured.iter().map(|row| row.record.case.implementation));
        Self { whats: whats.collect(), kernels, measured, all }
    }

    /// Measured rows that fulfill a condition.
    pub(super) fn with(&self, has: impl Fn(&Record) -> bool) -> Vec<Row<'a>> {
        self.measured.iter().copied().filter(|row| has(row.record)).collect()
    }

    /// Axes of all shapes.
    pub(super) fn axes(&self) -> Vec<&'a str> {
        distinct(self.all.iter().flat_map(|row| row.record.case.shape.iter().map(|(axis, _)| axis)))
    }

    /// Style of a series: color by recipe or operator, marker by implementation, consistent over all plots.
    fn look(&self, row: Row<'_>) -> Look {
        let what = row.what();
        let place = self.whats.iter().position(|known| *known == what);
        let kernels = row.record.case.implementation;
        Look::of(place, self.kernels.iter().position(|known| *known == kernels).unwrap_or(0))
    }

    /// Returns a series per recipe or operator and implementation; rows without a point are omitted.
    pub(super) fn series(&self, rows: &[Row<'a>], point: impl Fn(Row<'a>) -> Option<Point>) -> Vec<Series> {
        let groups = grouped(rows.iter().copied(), |row| row.who());
        let series = groups.into_iter().map(|(name, rows)| Series {
            name,
            look: self.look(rows[0]),
            points: rows.into_iter().filter_map(&point).collect(),
            weight: Weight::Plain,
        });
        series.filter(|series| !series.points.is_empty()).collect()
    }
}

impl Row<'_> {
    /// Compared item: the recipe of a model, or the name of an operator.
    pub(super) fn what(self) -> String {
        let case = &self.record.case;
        match case.mode {
            Mode::Operator(_) => case.workload.to_string(),
            Mode::Inference | Mode::Training => self.recipe(),
        }
    }

    /// Compared item and implementation.
    pub(super) fn who(self) -> String {
        format!("{} · {}", self.what(), self.record.case.implementation)
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
    grouped(values, Clone::clone).into_iter().map(|(value, _)| value).collect()
}

/// Groups items by key, in order of first occurrence.
pub(super) fn grouped<T, K: Clone + Eq + Hash>(
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
pub(super) fn mean(ratios: impl Iterator<Item = f64>) -> Option<f64> {
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
