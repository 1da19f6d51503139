//! Metrics over size, for the workload and axis with most sizes.

use serde::Serialize;

use super::axis::ChartAxis;
use super::chart::{Chart, ChartPoint};
use super::picture::Picture;
use crate::record::Record;
use crate::report::derived_columns::{label, number};
use crate::report::number_format::NumberFormat;
use crate::report::report_rows::{ReportRow, ReportRows, distinct, group_by, nanos};

/// Metric over size.
#[derive(Serialize)]
pub(in crate::report) struct SizeMetric {
    /// File name of the plot; `None` for metrics of the page only.
    #[serde(skip)]
    file: Option<&'static str>,
    label: &'static str,
    column: &'static str,
    format: NumberFormat,
    /// True for times, false for rates, whose confidence interval is inverted.
    is_time: bool,
}

const fn metric(
    file: Option<&'static str>,
    label: &'static str,
    column: &'static str,
    format: NumberFormat,
) -> SizeMetric {
    SizeMetric { file, label, column, format, is_time: false }
}

pub(in crate::report) static METRICS: [SizeMetric; 5] = [
    SizeMetric { is_time: true, ..metric(Some("sizes-time"), "time per pass", "time_ns", NumberFormat::Time) },
    metric(Some("sizes-bytes-per-second"), "bytes per second", "gbps", NumberFormat::Gbps),
    metric(Some("sizes-operations-per-second"), "operations per second", "tflops", NumberFormat::Tflops),
    metric(Some("sizes-share-of-the-roof"), "share of the peak", "roofline_percent", NumberFormat::Percent),
    metric(None, "speed-up", "speedup", NumberFormat::Ratio),
];

/// Size in a column or axis.
fn value(size: &str, row: &ReportRow<'_>) -> Option<f64> {
    number(size, row.record).filter(|size| *size > 0.0)
}

/// Column or axis that is shown first.
pub(in crate::report) fn default_size<'a>(rows: &ReportRows<'a>) -> Option<&'a str> {
    let timed = timed(rows);
    let parts = GroupProperties::new(rows);
    let several = |size: &&str| size_count(&timed, size) > 1;
    let axes = rows.axes();
    let sizes: Vec<&str> = axes.iter().copied().chain(["flops", "bytes"]).filter(several).collect();
    // Operations and bytes vary with every axis, so they are used only if no axis has several sizes.
    let worth = |size: &&&str| {
        let longest = groups(&timed, size, &parts).first().map_or(0, |(_, group)| size_count(group, size));
        (longest > 1 && axes.contains(*size), longest)
    };
    // Reversed, so that the first of equals is chosen.
    sizes.iter().rev().max_by_key(worth).copied()
}

fn timed<'a>(rows: &ReportRows<'a>) -> Vec<ReportRow<'a>> {
    rows.filtered(|record| nanos(record).is_some())
}

/// Plots of all metrics with values.
pub(super) fn pictures(rows: &ReportRows<'_>) -> Vec<(&'static str, Picture)> {
    let Some(size) = default_size(rows) else { return Vec::new() };
    let (timed, parts) = (timed(rows), GroupProperties::new(rows));
    METRICS.iter().filter_map(|metric| Some((metric.file?, picture(rows, &timed, size, metric, &parts)?))).collect()
}

fn picture(
    rows: &ReportRows<'_>,
    timed: &[ReportRow<'_>],
    size: &str,
    metric: &SizeMetric,
    held: &GroupProperties,
) -> Option<Picture> {
    let figure = |row: &ReportRow<'_>| number(metric.column, row.record).filter(|figure| *figure > 0.0);
    let usable: Vec<ReportRow> = timed.iter().copied().filter(|row| figure(row).is_some()).collect();
    let (name, group) = groups(&usable, size, held).into_iter().next()?;
    let mut series = rows.series(&group, |row| {
        let y = figure(&row)?;
        Some(ChartPoint { x: value(size, &row)?, y, bounds: bounds(row.record, y, metric.is_time) })
    });
    for one in &mut series {
        one.points.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    let x = ChartAxis::log(label(size), NumberFormat::Size);
    let y = ChartAxis::log(metric.label, metric.format);
    let title = if name.is_empty() { String::new() } else { format!(": {name}") };
    let title = format!("{} against {}{title}", capitalize(metric.label), label(size));
    Some(Picture::Chart(Chart { title, x, y, series, rules: Vec::new(), is_joined: true }))
}

/// Confidence interval of a time, or of a rate derived from it.
fn bounds(record: &Record, figure: f64, is_time: bool) -> Option<(f64, f64)> {
    let time = record.time.time_ns?;
    let (lo, hi) = (time.lo.filter(|lo| *lo > 0.0)?, time.hi?);
    Some(if is_time { (lo, hi) } else { (figure * time.median / hi, figure * time.median / lo) })
}

/// Properties other than sizes that distinguish groups of cases, if they vary.
struct GroupProperties(Vec<fn(&ReportRow<'_>) -> String>);

impl GroupProperties {
    fn new(rows: &ReportRows<'_>) -> Self {
        let parts: [fn(&ReportRow<'_>) -> String; 5] = [
            |row| row.run.to_owned(),
            |row| row.record.case.workload.to_string(),
            |row| row.record.case.device.to_string(),
            |row| row.record.case.element.to_string(),
            |row| row.record.case.regime.to_string(),
        ];
        Self(parts.into_iter().filter(|part| distinct(rows.measured.iter().map(part)).len() > 1).collect())
    }

    /// Name of a group: all that is constant while one size varies.
    fn group_name(&self, row: &ReportRow<'_>, size: &str) -> String {
        let shape = &row.record.case.shape;
        let others = shape.iter().filter(|(axis, _)| shape.get(size).is_some() && *axis != size);
        let parts = self.0.iter().map(|part| part(row));
        parts.chain(others.map(|(axis, value)| format!("{axis}{value}"))).collect::<Vec<_>>().join(" · ")
    }
}

/// Groups of cases that differ in one size, longest first.
fn groups<'a>(rows: &[ReportRow<'a>], size: &str, held: &GroupProperties) -> Vec<(String, Vec<ReportRow<'a>>)> {
    let with_size = rows.iter().copied().filter(|row| value(size, row).is_some());
    let mut groups = group_by(with_size, |row| held.group_name(row, size));
    groups.sort_by_key(|(_, group)| std::cmp::Reverse((size_count(group, size), group.len())));
    groups
}

fn size_count(group: &[ReportRow<'_>], size: &str) -> usize {
    distinct(group.iter().filter_map(|row| value(size, row)).map(f64::to_bits)).len()
}

fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}
