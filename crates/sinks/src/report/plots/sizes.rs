//! Metrics over size, for the workload and axis with most sizes.

use super::axis::ChartAxis;
use super::chart::{Chart, ChartPoint};
use super::number_format::{bytes_per_second, operations, percent, time, with_si_prefix};
use super::picture::Picture;
use super::report_rows::{ReportRow, ReportRows, distinct, group_by, nanos};
use crate::record::Record;

/// Metric that is plotted over size.
struct SizeMetric {
    file: &'static str,
    label: &'static str,
    text: fn(f64) -> String,
    read: fn(&Record) -> Option<f64>,
    /// True for times, false for rates, whose confidence interval is inverted.
    is_time: bool,
}

const METRICS: [SizeMetric; 4] = [
    SizeMetric { file: "sizes-time", label: "time per pass", text: time, read: nanos, is_time: true },
    SizeMetric {
        file: "sizes-bytes-per-second",
        label: "bytes per second",
        text: bytes_per_second,
        read: |record| record.rates.gbps.map(|rate| rate * 1e9),
        is_time: false,
    },
    SizeMetric {
        file: "sizes-operations-per-second",
        label: "operations per second",
        text: operations,
        read: |record| record.rates.tflops.map(|rate| rate * 1e12),
        is_time: false,
    },
    SizeMetric {
        file: "sizes-share-of-the-roof",
        label: "share of the peak",
        text: percent,
        read: |record| record.rates.roofline.as_ref().map(|roofline| roofline.percent),
        is_time: false,
    },
];

/// Quantity on the x axis.
#[derive(Clone, Copy, PartialEq)]
enum SizeAxis<'a> {
    Axis(&'a str),
    Operations,
    Bytes,
}

impl SizeAxis<'_> {
    fn value(self, row: &ReportRow<'_>) -> Option<u64> {
        let case = &row.record.case;
        match self {
            Self::Axis(axis) => case.shape.get(axis),
            Self::Operations => case.flops,
            Self::Bytes => case.bytes,
        }
        .filter(|size| *size > 0)
    }

    fn label(self) -> String {
        match self {
            Self::Axis(axis) => axis.to_owned(),
            Self::Operations => "operations per pass".into(),
            Self::Bytes => "bytes per pass".into(),
        }
    }
}

/// Plots of all metrics with values.
pub(super) fn pictures(rows: &ReportRows<'_>) -> Vec<(&'static str, Picture)> {
    let timed = rows.filtered(|record| nanos(record).is_some());
    let axes = rows.axes().into_iter().map(SizeAxis::Axis);
    let several = |size: &SizeAxis<'_>| distinct(timed.iter().filter_map(|row| size.value(row))).len() > 1;
    let sizes: Vec<SizeAxis> = axes.chain([SizeAxis::Operations, SizeAxis::Bytes]).filter(several).collect();
    let parts = GroupProperties::new(rows);
    // Operations and bytes vary with every axis, so they are used only if no axis has several sizes.
    let worth = |size: &SizeAxis<'_>| {
        let longest = groups(&timed, *size, &parts).first().map_or(0, |(_, group)| size_count(group, *size));
        (longest > 1 && matches!(size, SizeAxis::Axis(_)), longest)
    };
    // Reversed, so that the first of equals is chosen.
    let Some(&size) = sizes.iter().rev().max_by_key(|size| worth(size)) else { return Vec::new() };
    METRICS.iter().filter_map(|figure| Some((figure.file, picture(rows, &timed, size, figure, &parts)?))).collect()
}

fn picture(
    rows: &ReportRows<'_>,
    timed: &[ReportRow<'_>],
    size: SizeAxis<'_>,
    figure: &SizeMetric,
    held: &GroupProperties,
) -> Option<Picture> {
    let there =
        |row: &ReportRow<'_>| size.value(row).is_some() && (figure.read)(row.record).is_some_and(|value| value > 0.0);
    let usable: Vec<ReportRow> = timed.iter().copied().filter(there).collect();
    let (name, group) = groups(&usable, size, held).into_iter().next()?;
    let mut series = rows.series(&group, |row| {
        let y = (figure.read)(row.record)?;
        Some(ChartPoint { x: size.value(&row)? as f64, y, bounds: bounds(row.record, y, figure.is_time) })
    });
    for one in &mut series {
        one.points.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    let x = ChartAxis::log(size.label(), |value| with_si_prefix(value).trim().to_owned());
    let y = ChartAxis::log(figure.label, figure.text);
    let title = if name.is_empty() { String::new() } else { format!(": {name}") };
    let title = format!("{} against {}{title}", capitalize(figure.label), size.label());
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
        Self(parts.into_iter().filter(|part| distinct(rows.all.iter().map(part)).len() > 1).collect())
    }

    /// Name of a group: all that is constant while one size varies.
    fn group_name(&self, row: &ReportRow<'_>, size: SizeAxis<'_>) -> String {
        let others = row.record.case.shape.iter().filter(|(axis, _)| match size {
            SizeAxis::Axis(own) => *axis != own,
            SizeAxis::Operations | SizeAxis::Bytes => false,
        });
        let parts = self.0.iter().map(|part| part(row));
        parts.chain(others.map(|(axis, value)| format!("{axis}{value}"))).collect::<Vec<_>>().join(" · ")
    }
}

/// Groups of cases that differ in one size, longest first.
fn groups<'a>(rows: &[ReportRow<'a>], size: SizeAxis<'_>, held: &GroupProperties) -> Vec<(String, Vec<ReportRow<'a>>)> {
    let with_size = rows.iter().copied().filter(|row| size.value(row).is_some());
    let mut groups = group_by(with_size, |row| held.group_name(row, size));
    groups.sort_by_key(|(_, group)| std::cmp::Reverse((size_count(group, size), group.len())));
    groups
}

fn size_count(group: &[ReportRow<'_>], size: SizeAxis<'_>) -> usize {
    distinct(group.iter().filter_map(|row| size.value(row))).len()
}

fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}
