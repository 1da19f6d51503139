//! Roofline plot of all cases.

use super::axis::{ChartAxis, padded_range};
use super::chart::{Chart, ChartPoint, ReferenceLine};
use super::picture::Picture;
use crate::record::Record;
use crate::report::derived_columns::number;
use crate::report::number_format::NumberFormat;
use crate::report::report_rows::ReportRows;
use crate::report::roofs::{Roof, roofs, without_compute_peak};

pub(super) fn picture(rows: &ReportRows<'_>) -> Option<Picture> {
    let under = rows.filtered(|record| point(record).is_some());
    if under.is_empty() {
        return None;
    }
    let series = rows.series(&under, |row| point(row.record));
    let records: Vec<&Record> = under.iter().map(|row| row.record).collect();
    let (compute, memory) = (roofs(&records, Roof::of_compute), roofs(&records, Roof::of_memory));
    let points = || series.iter().flat_map(|series| &series.points);
    let highest = |roofs: &[Roof]| roofs.iter().map(|roof| roof.peak).reduce(f64::max);
    // The ridge point must be visible.
    let corner = highest(&compute).zip(highest(&memory)).map(|(compute, memory)| compute / memory);
    let xs = padded_range(points().map(|point| point.x).chain(corner), true);
    let ys = padded_range(points().map(|point| point.y).chain(compute.iter().map(|roof| roof.peak)), true);
    let top = highest(&compute).unwrap_or(ys.1);
    let slopes = memory.iter().filter_map(|Roof { name, peak }| {
        let (from, to) = (xs.0.max(ys.0 / peak), xs.1.min(top / peak));
        let corners = vec![(from, from * peak), (to, to * peak)];
        let name = format!("{name}: {}", NumberFormat::Gbps.write(peak / 1e9));
        (from < to).then_some(ReferenceLine { corners, name: Some(name), is_dashed: true })
    });
    let flats = compute.iter().map(|Roof { name, peak }| {
        let from = highest(&memory).map_or(xs.0, |memory| xs.0.max(peak / memory));
        ReferenceLine {
            corners: vec![(from, *peak), (xs.1, *peak)],
            name: Some(format!("{name}: {}", NumberFormat::Operations.write(*peak))),
            is_dashed: true,
        }
    });
    let rules = flats.chain(slopes).collect();
    let x = ChartAxis { range: Some(xs), ..ChartAxis::log("operations per byte", NumberFormat::Intensity) };
    let y = ChartAxis { range: Some(ys), ..ChartAxis::log("operations per second", NumberFormat::Operations) };
    let missing = without_compute_peak(&records);
    let note = (!missing.is_empty()).then(|| format!("No compute peak was measured for {}.", missing.join(", ")));
    Some(Picture::Chart(Chart { title: "Roofline".into(), x, y, series, rules, is_joined: false, note }))
}

fn point(record: &Record) -> Option<ChartPoint> {
    let (x, y) = (number("intensity", record)?, record.rates.tflops? * 1e12);
    (y > 0.0).then_some(ChartPoint { x, y, bounds: None })
}
