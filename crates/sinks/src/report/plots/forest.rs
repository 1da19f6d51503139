//! Forest plot: the speed-up of each case with its 95 % interval, around 1.

use calorimeter_case::Verdict;
use plotters::coord::ranged1d::Ranged;
use plotters::element::{PathElement, Rectangle};
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, RGBColor};
use plotters_backend::DrawingBackend;

use super::axis::{AxisScale, ChartAxis};
use super::canvas::{PlotArea, PlotError, TEXT_HEIGHT, text, truncate, width};
use super::palette::{FAINT, FASTER, GROUND, INK, RULE, SLOWER};
use crate::record::Speedup;
use crate::report::forest::forest_groups;
use crate::report::number_format::NumberFormat;
use crate::report::report_rows::ReportRows;

const MARGIN: u32 = 16;
const AXIS_HEIGHT: u32 = 40;
const ROW_HEIGHT: u32 = 24;
/// Width of the axis.
const AXIS_WIDTH: u32 = 520;
const GAP: u32 = 20;
/// Maximum number of rows, headings included, and of characters per name; the page shows more.
const MAX_ROWS: usize = 60;
const MAX_NAME_CHARS: usize = 64;

/// Speed-ups by comparison group.
pub(in crate::report) struct ForestPlot {
    rows: Vec<ForestRow>,
    hidden_cases: usize,
    axis: AxisScale,
}

enum ForestRow {
    Heading(String),
    Case { name: String, speedup: Speedup, label: String },
}

/// Plot of all speed-ups; `None` if there are none.
pub(super) fn plot(rows: &ReportRows<'_>) -> Option<ForestPlot> {
    let mut lines = Vec::new();
    for group in forest_groups(rows) {
        if !group.heading.is_empty() {
            lines.push(ForestRow::Heading(group.heading));
        }
        lines.extend(group.lines.into_iter().filter_map(|line| {
            let speedup = rows.all.get(line.row)?.speedup.clone()?;
            Some(ForestRow::Case { name: line.name, label: label(&speedup), speedup })
        }));
    }
    let mut shown: Vec<ForestRow> = lines.drain(..lines.len().min(MAX_ROWS)).collect();
    // No heading without cases.
    shown.truncate(shown.iter().rposition(|row| matches!(row, ForestRow::Case { .. }))? + 1);
    let hidden_cases = lines.iter().filter(|row| matches!(row, ForestRow::Case { .. })).count();
    let speedups = || {
        shown.iter().filter_map(|row| match row {
            ForestRow::Case { speedup, .. } => Some(speedup),
            ForestRow::Heading(_) => None,
        })
    };
    let lowest = speedups().map(|speedup| speedup.ratio).reduce(f64::min)?;
    let highest = speedups().map(|speedup| speedup.ratio).reduce(f64::max)?;
    // A very wide interval must not squeeze all others.
    let ends = speedups().flat_map(|one| [one.lo.unwrap_or(one.ratio), one.hi.unwrap_or(one.ratio)]);
    let ends = ends.map(|end| end.clamp(lowest / 2.0, highest * 2.0));
    let axis = ChartAxis::log("speed-up", NumberFormat::Ratio).scale(ends.chain([1.0]), 6);
    Some(ForestPlot { rows: shown, hidden_cases, axis })
}

fn label(speedup: &Speedup) -> String {
    let ratio = NumberFormat::Ratio.write(speedup.ratio);
    match (speedup.lo, speedup.hi) {
        (Some(lo), Some(hi)) => {
            let [lo, hi] = [lo, hi].map(|end| NumberFormat::Ratio.write(end));
            format!("{ratio} [{lo}, {hi}] {}", speedup.verdict)
        }
        _ => format!("{ratio} {}", speedup.verdict),
    }
}

fn color(verdict: Verdict) -> RGBColor {
    match verdict {
        Verdict::Faster => FASTER,
        Verdict::Slower => SLOWER,
        Verdict::Same | Verdict::Unclear => FAINT,
    }
}

impl ForestPlot {
    fn widest(&self, part: impl Fn(&ForestRow) -> Option<String>) -> u32 {
        self.rows.iter().filter_map(part).map(|text| width(&text, TEXT_HEIGHT)).max().unwrap_or(0)
    }

    fn name_width(&self) -> u32 {
        self.widest(|row| match row {
            ForestRow::Case { name, .. } => Some(truncate(name, MAX_NAME_CHARS)),
            ForestRow::Heading(_) => None,
        })
    }

    pub(super) fn size(&self) -> (u32, u32) {
        let labels = self.widest(|row| match row {
            ForestRow::Case { label, .. } => Some(label.clone()),
            ForestRow::Heading(_) => None,
        });
        let headings = self.widest(|row| match row {
            ForestRow::Heading(heading) => Some(heading.clone()),
            ForestRow::Case { .. } => None,
        });
        let wide = self.name_width() + GAP + AXIS_WIDTH + GAP + labels;
        let rows = self.rows.len() + usize::from(self.hidden_cases > 0);
        (2 * MARGIN + wide.max(headings), AXIS_HEIGHT + rows as u32 * ROW_HEIGHT + MARGIN)
    }

    pub(super) fn draw<B: DrawingBackend>(&self, area: &PlotArea<B>) -> Result<(), PlotError>
    where
        B::ErrorType: 'static,
    {
        let left = (MARGIN + self.name_width() + GAP) as i32;
        let right = left + AXIS_WIDTH as i32;
        let x = |value: f64| self.axis.map(&value.clamp(self.axis.lo, self.axis.hi), (left, right));
        let middle = |row: usize| (AXIS_HEIGHT + row as u32 * ROW_HEIGHT + ROW_HEIGHT / 2) as i32;
        let (top, bottom) = (AXIS_HEIGHT as i32 - 6, (AXIS_HEIGHT + self.rows.len() as u32 * ROW_HEIGHT) as i32);
        let ticks = self.axis.ticks().iter().zip(self.axis.tick_labels(NumberFormat::Ratio));
        for (tick, label) in ticks {
            area.draw(&PathElement::new(vec![(x(*tick), top), (x(*tick), bottom)], RULE))?;
            text(area, &label, (x(*tick), top - 4), (TEXT_HEIGHT, FAINT), (HPos::Center, VPos::Bottom))?;
        }
        area.draw(&PathElement::new(vec![(x(1.0), top), (x(1.0), bottom)], INK.stroke_width(2)))?;
        for (place, row) in self.rows.iter().enumerate() {
            let y = middle(place);
            match row {
                ForestRow::Heading(heading) => {
                    // The grid must not cross the heading.
                    let end = MARGIN as i32 + width(heading, TEXT_HEIGHT) as i32 + 6;
                    let cover = [(MARGIN as i32, y - 11), (end, y + 11)];
                    area.draw(&Rectangle::new(cover, GROUND.filled()))?;
                    text(area, heading, (MARGIN as i32, y), (TEXT_HEIGHT, FAINT), (HPos::Left, VPos::Center))?;
                }
                ForestRow::Case { name, speedup, label } => {
                    let color = color(speedup.verdict);
                    let name = truncate(name, MAX_NAME_CHARS);
                    text(area, &name, (MARGIN as i32, y), (TEXT_HEIGHT, INK), (HPos::Left, VPos::Center))?;
                    if let (Some(lo), Some(hi)) = (speedup.lo, speedup.hi) {
                        area.draw(&PathElement::new(vec![(x(lo), y), (x(hi), y)], color.stroke_width(3)))?;
                        for end in [lo, hi] {
                            area.draw(&PathElement::new(
                                vec![(x(end), y - 4), (x(end), y + 4)],
                                color.stroke_width(2),
                            ))?;
                        }
                    }
                    let at = x(speedup.ratio);
                    area.draw(&Rectangle::new([(at - 4, y - 4), (at + 4, y + 4)], color.filled()))?;
                    text(area, label, (right + GAP as i32, y), (TEXT_HEIGHT, INK), (HPos::Left, VPos::Center))?;
                }
            }
        }
        if self.hidden_cases > 0 {
            let more = format!("and {} more cases", self.hidden_cases);
            let at = (MARGIN as i32, middle(self.rows.len()));
            text(area, &more, at, (TEXT_HEIGHT, FAINT), (HPos::Left, VPos::Center))?;
        }
        Ok(())
    }
}
