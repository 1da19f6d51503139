//! Roofline plot of all cases.

use super::axis::{Axis, around};
use super::chart::{Chart, Point, Rule};
use super::figures::{bytes_per_second, digits, operations};
use super::picture::Picture;
use super::rows::Rows;
use crate::record::{Record, Roofline};

/// Maximum number of peaks per direction.
const PEAKS: usize = 4;

pub(super) fn picture(rows: &Rows<'_>) -> Option<Picture> {
    let under = rows.with(|record| point(record).is_some());
    if under.is_empty() {
        return None;
    }
    let series = rows.series(&under, |row| point(row.record));
    let peaks = |of: fn(&Roofline) -> Option<f64>, scale: f64| {
        let known = under.iter().filter_map(|row| of(row.record.rates.roofline.as_ref()?));
        let mut peaks: Vec<f64> = known.filter(|peak| *peak > 0.0).map(|peak| peak * scale).collect();
        peaks.sort_unstable_by(|one, other| other.total_cmp(one));
        peaks.dedup();
        peaks.truncate(PEAKS);
        peaks
    };
    let compute = peaks(|roofline| roofline.peak_tflops, 1e12);
    let memory = peaks(|roofline| roofline.peak_gbps, 1e9);
    let points = || series.iter().flat_map(|series| &series.points);
    // The ridge point must be visible.
    let corner = compute.first().zip(memory.first()).map(|(compute, memory)| compute / memory);
    let xs = around(points().map(|point| point.x).chain(corner), true);
    let ys = around(points().map(|point| point.y).chain(compute.iter().copied()), true);
    let highest = compute.first().copied().unwrap_or(ys.1);
    let slopes = memory.iter().filter_map(|peak| {
        let (from, to) = (xs.0.max(ys.0 / peak), xs.1.min(highest / peak));
        let corners = vec![(from, from * peak), (to, to * peak)];
        (from < to).then(|| Rule { corners, name: Some(bytes_per_second(*peak)), is_dashed: true })
    });
    let flats = compute.iter().map(|peak| {
        let from = memory.first().map_or(xs.0, |memory| xs.0.max(peak / memory));
        Rule { corners: vec![(from, *peak), (xs.1, *peak)], name: Some(operations(*peak)), is_dashed: true }
    });
    let rules = slopes.chain(flats).collect();
    let x = Axis { range: Some(xs), ..Axis::log("operations per byte", |value| digits(value, 2)) };
    let y = Axis { range: Some(ys), ..Axis::log("operations per second", operations) };
    Some(Picture::Chart(Chart { title: "Roofline".into(), x, y, series, rules, is_joined: false }))
}

fn point(record: &Record) -> Option<Point> {
    let (flops, bytes) = (record.case.flops? as f64, record.case.bytes? as f64);
    let y = record.rates.tflops? * 1e12;
    (flops > 0.0 && bytes > 0.0 && y > 0.0).then(|| Point { x: flops / bytes, y, bounds: None })
}
