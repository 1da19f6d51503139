//! Metrics over size, for the workload and axis with most sizes.

use super::axis::ChartAxis;
use super::chart::{Chart, ChartPoint};
use super::picture::Picture;
use crate::record::Record;
use crate::report::derived_columns::{WORK, item_and_implementation, label, number, text};
use crate::report::number_format::NumberFormat;
use crate::report::report_rows::{ReportRow, ReportRows, distinct, group_by, nanos};

/// Metric over size: file name of the plot, if it has one, label, column, and format.
pub(in crate::report) type SizeMetric = (Option<&'static str>, &'static str, &'static str, NumberFormat);

pub(in crate::report) const METRICS: [SizeMetric; 5] = [
    (Some("sizes-time"), "time per pass", "time_ns", NumberFormat::Time),
    (Some("sizes-bytes-per-second"), "bytes per second", "gbps", NumberFormat::Gbps),
    (Some("sizes-operations-per-second"), "operations per second", "tflops", NumberFormat::Tflops),
    (Some("sizes-share-of-the-roof"), "share of the peak", "roofline_percent", NumberFormat::Percent),
    (None, "speed-up", "speedup", NumberFormat::Ratio),
];

/// Size in a column or axis.
fn value(size: &str, row: &ReportRow<'_>) -> Option<f64> {
    number(size, row.record).filter(|size| *size > 0.0)
}

/// Column or axis that is shown first.
pub(in crate::report) fn default_size<'a>(rows: &ReportRows<'a>) -> Option<&'a str> {
    let (timed, axes) = (timed(rows), rows.axes());
    // Operations and bytes vary with every axis, so they are used only if no axis has several sizes.
    let worth = |size: &&str| {
        let longest = groups(&timed, size).first().map_or(0, |(_, group)| size_count(group, size));
        (longest > 1 && axes.contains(size), longest)
    };
    // A series of a single point has no scaling.
    let scales = |group: &[ReportRow<'a>], size: &str| {
        let series = group_by(group.iter().copied(), |row| item_and_implementation(row.record));
        series.iter().any(|(_, rows)| size_count(rows, size) > 1)
    };
    let several = |size: &&str| groups(&timed, size).iter().any(|(_, group)| scales(group, size));
    let sizes: Vec<&str> = axes.iter().copied().chain(WORK.map(|(name, _)| name)).filter(several).collect();
    // Reversed, so that the first of equals is chosen.
    sizes.into_iter().rev().max_by_key(worth)
}

fn timed<'a>(rows: &ReportRows<'a>) -> Vec<ReportRow<'a>> {
    rows.filtered(|record| nanos(record).is_some())
}

/// Plots of all metrics with values.
pub(super) fn pictures(rows: &ReportRows<'_>) -> Vec<(&'static str, Picture)> {
    let Some(size) = default_size(rows) else { return Vec::new() };
    let timed = timed(rows);
    METRICS.into_iter().filter_map(|metric| Some((metric.0?, picture(rows, &timed, size, metric)?))).collect()
}

fn picture(
    rows: &ReportRows<'_>,
    timed: &[ReportRow<'_>],
    size: &str,
    (_, name, column, format): SizeMetric,
) -> Option<Picture> {
    let figure = |row: &ReportRow<'_>| number(column, row.record).filter(|figure| *figure > 0.0);
    let usable: Vec<ReportRow> = timed.iter().copied().filter(|row| figure(row).is_some()).collect();
    let (group_name, group) = groups(&usable, size).into_iter().next()?;
    let mut series = rows.series(&group, |row| {
        let y = figure(&row)?;
        Some(ChartPoint { x: value(size, &row)?, y, bounds: bounds(row.record, y, column == "time_ns") })
    });
    for one in &mut series {
        one.points.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    let x = ChartAxis::log(label(size), NumberFormat::Size);
    let y = ChartAxis::log(name, format);
    let title = if group_name.is_empty() { String::new() } else { format!(": {group_name}") };
    let title = format!("{} against {}{title}", capitalize(name), label(size));
    Some(Picture::Chart(Chart { title, x, y, series, rules: Vec::new(), is_joined: true, note: None }))
}

/// Confidence interval of a time, or of a rate derived from it.
fn bounds(record: &Record, figure: f64, is_time: bool) -> Option<(f64, f64)> {
    let time = record.time.time_ns?;
    let (lo, hi) = (time.lo.filter(|lo| *lo > 0.0)?, time.hi?);
    Some(if is_time { (lo, hi) } else { (figure * time.median / hi, figure * time.median / lo) })
}

/// Groups of cases that differ in one size, longest first. The name of a group holds what differs between groups.
fn groups<'a>(rows: &[ReportRow<'a>], size: &str) -> Vec<(String, Vec<ReportRow<'a>>)> {
    let differs = |name: &&str| distinct(rows.iter().map(|row| text(name, row.record))).len() > 1;
    let columns: Vec<&str> = ["workload", "device", "dtype", "regime"].into_iter().filter(differs).collect();
    let name = |row: &ReportRow<'_>| {
        let shape = &row.record.case.shape;
        let axes = shape.iter().filter(|(axis, _)| shape.get(size).is_some() && *axis != size);
        let parts = columns.iter().filter_map(|name| text(name, row.record));
        let parts = row.run.map(String::from).into_iter().chain(parts);
        parts.chain(axes.map(|(axis, value)| format!("{axis}{value}"))).collect::<Vec<_>>().join(" · ")
    };
    let mut groups = group_by(rows.iter().copied().filter(|row| value(size, row).is_some()), name);
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
