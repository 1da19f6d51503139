//! Metrics over size, for the workload and axis with most sizes.

use super::axis::Axis;
use super::chart::{Chart, Point};
use super::figures::{bytes_per_second, letters, operations, percent, time};
use super::picture::Picture;
use super::rows::{Row, Rows, distinct, grouped, nanos};
use crate::record::Record;

/// Metric that is plotted over size.
struct Figure {
    file: &'static str,
    label: &'static str,
    text: fn(f64) -> String,
    read: fn(&Record) -> Option<f64>,
    /// True for times, false for rates, whose confidence interval is inverted.
    is_time: bool,
}

const FIGURES: [Figure; 4] = [
    Figure { file: "sizes-time", label: "time per pass", text: time, read: nanos, is_time: true },
    Figure {
        file: "sizes-bytes-per-second",
        label: "bytes per second",
        text: bytes_per_second,
        read: |record| record.rates.gbps.map(|rate| rate * 1e9),
        is_time: false,
    },
    Figure {
        file: "sizes-operations-per-second",
        label: "operations per second",
        text: operations,
        read: |record| record.rates.tflops.map(|rate| rate * 1e12),
        is_time: false,
    },
    Figure {
        file: "sizes-share-of-the-roof",
        label: "share of the peak",
        text: percent,
        read: |record| record.rates.roofline.as_ref().map(|roofline| roofline.percent),
        is_time: false,
    },
];

/// Quantity on the x axis.
#[derive(Clone, Copy, PartialEq)]
enum Size<'a> {
    Axis(&'a str),
    Operations,
    Bytes,
}

impl Size<'_> {
    fn of(self, row: &Row<'_>) -> Option<u64> {
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
pub(super) fn pictures(rows: &Rows<'_>) -> Vec<(&'static str, Picture)> {
    let timed = rows.with(|record| nanos(record).is_some());
    let axes = rows.axes().into_iter().map(Size::Axis);
    let several = |size: &Size<'_>| distinct(timed.iter().filter_map(|row| size.of(row))).len() > 1;
    let sizes: Vec<Size> = axes.chain([Size::Operations, Size::Bytes]).filter(several).collect();
    let parts = Held::of(rows);
    // Operations and bytes vary with every axis, so they are used only if no axis has several sizes.
    let worth = |size: &Size<'_>| {
        let longest = groups(&timed, *size, &parts).first().map_or(0, |(_, group)| lengths(group, *size));
        (longest > 1 && matches!(size, Size::Axis(_)), longest)
    };
    // Reversed, so that the first of equals is chosen.
    let Some(&size) = sizes.iter().rev().max_by_key(|size| worth(size)) else { return Vec::new() };
    FIGURES.iter().filter_map(|figure| Some((figure.file, picture(rows, &timed, size, figure, &parts)?))).collect()
}

fn picture(rows: &Rows<'_>, timed: &[Row<'_>], size: Size<'_>, figure: &Figure, held: &Held) -> Option<Picture> {
    let there = |row: &Row<'_>| size.of(row).is_some() && (figure.read)(row.record).is_some_and(|value| value > 0.0);
    let usable: Vec<Row> = timed.iter().copied().filter(there).collect();
    let (name, group) = groups(&usable, size, held).into_iter().next()?;
    let mut series = rows.series(&group, |row| {
        let y = (figure.read)(row.record)?;
        Some(Point { x: size.of(&row)? as f64, y, bounds: bounds(row.record, y, figure.is_time) })
    });
    for one in &mut series {
        one.points.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    let x = Axis::log(size.label(), |value| letters(value).trim().to_owned());
    let y = Axis::log(figure.label, figure.text);
    let title = if name.is_empty() { String::new() } else { format!(": {name}") };
    let title = format!("{} against {}{title}", capital(figure.label), size.label());
    Some(Picture::Chart(Chart { title, x, y, series, rules: Vec::new(), is_joined: true }))
}

/// Confidence interval of a time, or of a rate derived from it.
fn bounds(record: &Record, figure: f64, is_time: bool) -> Option<(f64, f64)> {
    let time = record.time.time_ns?;
    let (lo, hi) = (time.lo.filter(|lo| *lo > 0.0)?, time.hi?);
    Some(if is_time { (lo, hi) } else { (figure * time.median / hi, figure * time.median / lo) })
}

/// Properties other than sizes that distinguish groups of cases, if they vary.
struct Held(Vec<fn(&Row<'_>) -> String>);

impl Held {
    fn of(rows: &Rows<'_>) -> Self {
        let parts: [fn(&Row<'_>) -> String; 5] = [
            |row| row.run.to_owned(),
            |row| row.record.case.workload.to_string(),
            |row| row.record.case.device.to_string(),
            |row| row.record.case.element.to_string(),
            |row| row.record.case.regime.to_string(),
        ];
        Self(parts.into_iter().filter(|part| distinct(rows.all.iter().map(part)).len() > 1).collect())
    }

    /// Name of a group: all that is constant while one size varies.
    fn name(&self, row: &Row<'_>, size: Size<'_>) -> String {
        let others = row.record.case.shape.iter().filter(|(axis, _)| match size {
            Size::Axis(own) => *axis != own,
            Size::Operations | Size::Bytes => false,
        });
        let parts = self.0.iter().map(|part| part(row));
        parts.chain(others.map(|(axis, value)| format!("{axis}{value}"))).collect::<Vec<_>>().join(" · ")
    }
}

/// Groups of cases that differ in one size, longest first.
fn groups<'a>(rows: &[Row<'a>], size: Size<'_>, held: &Held) -> Vec<(String, Vec<Row<'a>>)> {
    let with_size = rows.iter().copied().filter(|row| size.of(row).is_some());
    let mut groups = grouped(with_size, |row| held.name(row, size));
    groups.sort_by_key(|(_, group)| std::cmp::Reverse((lengths(group, size), group.len())));
    groups
}

fn lengths(group: &[Row<'_>], size: Size<'_>) -> usize {
    distinct(group.iter().filter_map(|row| size.of(row))).len()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}
