//! Scatter plot of accuracy against speed with its Pareto front.

use super::axis::{ChartAxis, padded_range};
use super::chart::{Chart, ChartPoint, ChartSeries, ReferenceLine, SeriesEmphasis};
use super::picture::Picture;
use crate::record::Record;
use crate::report::number_format::NumberFormat;
use crate::report::report_rows::{ReportRows, geometric_mean, is_model, median, speedup};

pub(super) fn picture(rows: &ReportRows<'_>) -> Option<Picture> {
    let judged = |record: &Record| {
        let known = record.accuracy.as_ref().is_some_and(|accuracy| accuracy.sqnr_db.is_some() || accuracy.is_exact());
        known && is_model(record) && speedup(record).is_some()
    };
    let judged = rows.filtered(judged);
    if judged.is_empty() {
        return None;
    }
    let known = judged.iter().filter_map(|row| row.record.accuracy.as_ref()?.sqnr_db);
    let (low, high) = padded_range(known, false);
    // An exact output has no noise, so it is drawn above all SQNRs.
    let ceiling = high + (high - low) * 0.12;
    let small = rows.series(&judged, |row| {
        let accuracy = row.record.accuracy.as_ref()?;
        let y = if accuracy.is_exact() { ceiling } else { accuracy.sqnr_db? };
        Some(ChartPoint { x: speedup(row.record)?, y, bounds: None })
    });
    let middle = |series: &ChartSeries| {
        let x = geometric_mean(series.points.iter().map(|point| point.x))?;
        let y = median(series.points.iter().map(|point| point.y))?;
        Some(ChartSeries {
            points: vec![ChartPoint { x, y, bounds: None }],
            emphasis: SeriesEmphasis::Large,
            ..series.clone()
        })
    };
    let means: Vec<ChartSeries> = small.iter().filter_map(middle).collect();
    let points: Vec<(f64, f64)> = means.iter().map(|series| (series.points[0].x, series.points[0].y)).collect();
    let (lo, hi) = padded_range(small.iter().flat_map(|series| &series.points).map(|point| point.x).chain([1.0]), true);
    let top = ceiling + (high - low) * 0.06;
    let ceiling_line =
        ReferenceLine { corners: vec![(lo, ceiling), (hi, ceiling)], name: Some("exact".into()), is_dashed: false };
    let has_exact = judged.iter().any(|row| row.record.accuracy.as_ref().is_some_and(|accuracy| accuracy.is_exact()));
    let rules = [
        Some(ReferenceLine { corners: vec![(1.0, low), (1.0, top)], name: None, is_dashed: false }),
        Some(ReferenceLine { corners: steps(&pareto_front(&points)), name: None, is_dashed: true }),
        has_exact.then_some(ceiling_line),
    ];
    let faded = small.into_iter().map(|series| ChartSeries { emphasis: SeriesEmphasis::Faded, ..series });
    let x = ChartAxis { range: Some((lo, hi)), ..ChartAxis::log("speed-up over the baseline", NumberFormat::Ratio) };
    let y = ChartAxis { label: "SQNR".into(), format: NumberFormat::Decibels, is_log: false, range: Some((low, top)) };
    Some(Picture::Chart(Chart {
        title: "Accuracy and speed-up: large points are means, the dashed line is the Pareto front".into(),
        x,
        y,
        series: faded.chain(means).collect(),
        rules: rules.into_iter().flatten().collect(),
        is_joined: false,
        note: None,
    }))
}

/// Pareto front, ordered by speed.
fn pareto_front(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let beats = |one: &(f64, f64), other: &(f64, f64)| one != other && one.0 >= other.0 && one.1 >= other.1;
    let mut front: Vec<(f64, f64)> =
        points.iter().filter(|point| !points.iter().any(|other| beats(other, point))).copied().collect();
    front.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    front
}

/// Steps of the front: horizontal to the next point, then down, since interpolated points are not attainable.
fn steps(front: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let between = front.windows(2).flat_map(|pair| [(pair[1].0, pair[0].1), pair[1]]);
    front.first().copied().into_iter().chain(between).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pareto_front_has_no_dominated_points() {
        let points = [(1.0, 40.0), (2.0, 30.0), (1.5, 20.0), (3.0, 10.0), (2.0, 30.0)];
        assert_eq!(pareto_front(&points), [(1.0, 40.0), (2.0, 30.0), (2.0, 30.0), (3.0, 10.0)]);
        assert_eq!(steps(&[(1.0, 4.0), (2.0, 3.0)]), [(1.0, 4.0), (2.0, 4.0), (2.0, 3.0)]);
        assert!(steps(&[]).is_empty());
    }
}
