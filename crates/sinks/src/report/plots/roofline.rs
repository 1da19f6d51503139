//! Roofline plot of all cases.

use super::axis::{ChartAxis, padded_range};
use super::chart::{Chart, ChartPoint, ReferenceLine};
use super::picture::Picture;
use crate::record::{Record, Roofline};
use crate::report::derived_columns::number;
use crate::report::number_format::NumberFormat;
use crate::report::report_rows::ReportRows;

/// Maximum number of peaks per direction.
const MAX_PEAKS: usize = 4;

pub(super) fn picture(rows: &ReportRows<'_>) -> Option<Picture> {
    let under = rows.filtered(|record| point(record).is_some());
    if under.is_empty() {
        return None;
    }
    let series = rows.series(&under, |row| point(row.record));
    let peaks = |of: fn(&Roofline) -> Option<f64>, scale: f64| {
        let known = under.iter().filter_map(|row| of(row.record.rates.roofline.as_ref()?));
        let mut peaks: Vec<f64> = known.filter(|peak| *peak > 0.0).map(|peak| peak * scale).collect();
        peaks.sort_unstable_by(|one, other| other.total_cmp(one));
        peaks.dedup();
        peaks.truncate(MAX_PEAKS);
        peaks
    };
    let compute = peaks(|roofline| roofline.peak_tflops, 1e12);
    let memory = peaks(|roofline| roofline.peak_gbps, 1e9);
    let points = || series.iter().flat_map(|series| &series.points);
    // The ridge point must be visible.
    let corner = compute.first().zip(memory.first()).map(|(compute, memory)| compute / memory);
    let xs = padded_range(points().map(|point| point.x).chain(corner), true);
    let ys = padded_range(points().map(|point| point.y).chain(compute.iter().copied()), true);
    let highest = compute.first().copied().unwrap_or(ys.1);
    let slopes = memory.iter().filter_map(|peak| {
        let (from, to) = (xs.0.max(ys.0 / peak), xs.1.min(highest / peak));
        let corners = vec![(from, from * peak), (to, to * peak)];
        (from < to).then(|| ReferenceLine {
            corners,
            name: Some(NumberFormat::Gbps.write(peak / 1e9)),
            is_dashed: true,
        })
    });
    let flats = compute.iter().map(|peak| {
        let from = memory.first().map_or(xs.0, |memory| xs.0.max(peak / memory));
        ReferenceLine {
            corners: vec![(from, *peak), (xs.1, *peak)],
            name: Some(NumberFormat::Operations.write(*peak)),
            is_dashed: true,
        }
    });
    let rules = slopes.chain(flats).collect();
    let x = ChartAxis { range: Some(xs), ..ChartAxis::log("operations per byte", NumberFormat::Intensity) };
    let y = ChartAxis { range: Some(ys), ..ChartAxis::log("operations per second", NumberFormat::Operations) };
    Some(Picture::Chart(Chart { title: "Roofline".into(), x, y, series, rules, is_joined: false }))
}

fn point(record: &Record) -> Option<ChartPoint> {
    let (x, y) = (number("intensity", record)?, record.rates.tflops? * 1e12);
    (y > 0.0).then_some(ChartPoint { x, y, bounds: None })
}
