//! Axes: ranges and ticks.

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use serde::Serialize;
use std::ops::Range;

use crate::report::number_format::NumberFormat;

/// Axis of a chart.
#[derive(Serialize)]
pub(in crate::report) struct ChartAxis {
    pub(super) label: String,
    pub(super) format: NumberFormat,
    #[serde(rename = "log")]
    pub(super) is_log: bool,
    /// Fixed range; `None` fits the points.
    #[serde(skip)]
    pub(super) range: Option<(f64, f64)>,
}

impl ChartAxis {
    pub(in crate::report) fn log(label: impl Into<String>, format: NumberFormat) -> Self {
        Self { label: label.into(), format, is_log: true, range: None }
    }

    /// Determines range and ticks for these values.
    pub(super) fn scale(&self, values: impl Iterator<Item = f64>, most_ticks: usize) -> AxisScale {
        let (lo, hi) = self.range.unwrap_or_else(|| padded_range(values, self.is_log));
        AxisScale { lo, hi, is_log: self.is_log, ticks: ticks(lo, hi, self.is_log, most_ticks) }
    }
}

/// Range of the values with a margin.
pub(super) fn padded_range(values: impl Iterator<Item = f64>, is_log: bool) -> (f64, f64) {
    let (lo, hi) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), value| (lo.min(value), hi.max(value)));
    if lo > hi {
        return (1.0, 10.0);
    }
    if is_log {
        let room = (hi / lo).powf(0.04).max(1.08);
        return (lo / room, hi * room);
    }
    let room = [(hi - lo) * 0.06, hi.abs() * 0.1, 1.0].into_iter().find(|room| *room > 0.0).unwrap_or(1.0);
    (lo - room, hi + room)
}

/// Returns about `most` round values between two ends.
fn ticks(lo: f64, hi: f64, is_log: bool, most: usize) -> Vec<f64> {
    if is_log {
        let decades = (hi / lo).log10();
        let steps: &[f64] = match decades {
            many if many > most as f64 => &[1.0],
            some if some > most as f64 / 3.0 => &[1.0, 3.0],
            _ => &[1.0, 2.0, 5.0],
        };
        let every = (decades / most as f64).ceil().max(1.0) as i32;
        let powers = (lo.log10().floor() as i32..=hi.log10().ceil() as i32).filter(|power| power % every == 0);
        let found = powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        let inside: Vec<f64> = found.filter(|value| (lo * 0.999..=hi * 1.001).contains(value)).collect();
        if inside.len() >= 2 {
            return inside;
        }
    }
    let rough = (hi - lo) / most as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(rough);
    let first = (lo / step).ceil() as i64;
    (first..).map(|count| count as f64 * step).take_while(|value| *value <= hi * 1.000_001).take(2 * most).collect()
}

/// Axis with a fixed range.
#[derive(Clone)]
pub(super) struct AxisScale {
    pub(super) lo: f64,
    pub(super) hi: f64,
    is_log: bool,
    ticks: Vec<f64>,
}

impl AxisScale {
    pub(super) fn ticks(&self) -> &[f64] {
        &self.ticks
    }

    /// Formats the ticks.
    pub(super) fn tick_labels(&self, format: NumberFormat) -> Vec<String> {
        self.ticks.iter().map(|tick| format.write(*tick)).collect()
    }
}

impl Ranged for AxisScale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let share = if self.is_log {
            (value / self.lo).ln() / (self.hi / self.lo).ln()
        } else {
            (value - self.lo) / (self.hi - self.lo)
        };
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // One set of lines: light ones would be drawn over them.
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.lo..self.hi
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (lo, hi, is_log, most, expected) in [
            (1.0, 1000.0, true, 7, vec![1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0]),
            (0.9, 11.0, true, 7, vec![1.0, 2.0, 5.0, 10.0]),
            (40.0, 47.0, true, 7, vec![40.0, 41.0, 42.0, 43.0, 44.0, 45.0, 46.0, 47.0]),
            (-3.0, 9.0, false, 6, vec![-2.0, 0.0, 2.0, 4.0, 6.0, 8.0]),
        ] {
            assert_eq!(ticks(lo, hi, is_log, most), expected, "{lo} {hi}");
        }
        assert!(ticks(1e-3, 1e12, true, 7).len() <= 8);
    }

    #[test]
    fn single_values_get_a_margin() {
        for (value, is_log) in [(5.0, true), (5.0, false), (0.0, false)] {
            let (lo, hi) = padded_range([value].into_iter(), is_log);
            assert!(lo < value && value < hi, "{lo} {hi}");
        }
    }
}
