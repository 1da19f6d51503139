//! Chart with points, lines and intervals over two axes.

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::element::{DashedPathElement, EmptyElement, PathElement, Polygon};
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, RGBColor, ShapeStyle};
use plotters_backend::DrawingBackend;
use serde::Serialize;
use std::ops::Range;

use super::axis::{AxisScale, ChartAxis};
use super::canvas::{PlotArea, PlotError, TEXT_HEIGHT, style, text, truncate, width};
use super::palette::{FAINT, GROUND, INK, RULE, SeriesStyle};

const WIDTH: u32 = 1200;
const HEIGHT: u32 = 640;
/// Height of a legend line.
const LEGEND_LINE_HEIGHT: u32 = 22;
const MARGIN: u32 = 16;

/// Points over two axes.
#[derive(Serialize)]
pub(in crate::report) struct Chart {
    pub(in crate::report) title: String,
    pub(in crate::report) x: ChartAxis,
    pub(in crate::report) y: ChartAxis,
    pub(in crate::report) series: Vec<ChartSeries>,
    #[serde(skip)]
    pub(in crate::report) rules: Vec<ReferenceLine>,
    /// True if the points of a series are connected.
    #[serde(rename = "lines")]
    pub(in crate::report) is_joined: bool,
    /// Line below the legend.
    #[serde(skip)]
    pub(in crate::report) note: Option<String>,
}

/// Points of one style.
#[derive(Clone, Serialize)]
pub(in crate::report) struct ChartSeries {
    pub(in crate::report) name: String,
    pub(in crate::report) style: SeriesStyle,
    pub(in crate::report) points: Vec<ChartPoint>,
    #[serde(skip)]
    pub(in crate::report) emphasis: SeriesEmphasis,
    /// Lines that the page shows for each point.
    pub(in crate::report) tips: Vec<Vec<String>>,
}

/// Emphasis of a series.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::report) enum SeriesEmphasis {
    /// Background points without a legend entry.
    Faded,
    Plain,
    Large,
}

#[derive(Clone, Copy, Serialize)]
pub(in crate::report) struct ChartPoint {
    pub(in crate::report) x: f64,
    pub(in crate::report) y: f64,
    /// Bounds of the confidence interval.
    #[serde(skip)]
    pub(in crate::report) bounds: Option<(f64, f64)>,
}

/// Reference line, such as a peak or a Pareto front.
pub(in crate::report) struct ReferenceLine {
    pub(super) corners: Vec<(f64, f64)>,
    /// Label at the end of the line.
    pub(super) name: Option<String>,
    pub(super) is_dashed: bool,
}

impl Chart {
    pub(super) fn size(&self) -> (u32, u32) {
        let lines = self.legend_lines() + usize::from(self.note.is_some());
        (WIDTH, HEIGHT + lines as u32 * LEGEND_LINE_HEIGHT + MARGIN)
    }

    pub(super) fn draw<B: DrawingBackend>(&self, area: &PlotArea<B>) -> Result<(), PlotError>
    where
        B::ErrorType: 'static,
    {
        let (upper, lower) = area.split_vertically(HEIGHT);
        let points = || self.series.iter().flat_map(|series| &series.points);
        let xs = self.x.scale(points().map(|point| point.x), 10);
        let of_y = points().flat_map(|point| {
            let (lo, hi) = point.bounds.unwrap_or((point.y, point.y));
            [lo, hi]
        });
        let ys = self.y.scale(of_y, 8);
        let widest = ys.tick_labels(self.y.format).iter().map(|label| width(label, TEXT_HEIGHT)).max().unwrap_or(0);
        let mut drawn = ChartBuilder::on(&upper)
            .margin(MARGIN)
            .margin_top(28)
            .margin_right(40)
            .x_label_area_size(56)
            .y_label_area_size(widest + 14)
            .build_cartesian_2d(xs.clone(), ys.clone())?;
        drawn
            .configure_mesh()
            .light_line_style(RULE)
            .bold_line_style(RULE)
            .axis_style(FAINT)
            .label_style(style(TEXT_HEIGHT, FAINT))
            .axis_desc_style(style(TEXT_HEIGHT, INK))
            .x_label_formatter(&|value| self.x.format.write(*value))
            .y_label_formatter(&|value| self.y.format.write(*value))
            .x_desc(&self.x.label)
            .draw()?;
        // Horizontal, for readability.
        text(area, &self.y.label, (MARGIN as i32, 4), (TEXT_HEIGHT, INK), (HPos::Left, VPos::Top))?;
        for rule in &self.rules {
            rule.draw(&mut drawn)?;
        }
        let size = match points().count() {
            2001.. => 2.5,
            301.. => 3.5,
            _ => 5.0,
        };
        for series in &self.series {
            series.draw(&mut drawn, self.is_joined, size)?;
        }
        label_rules(self, &drawn, (&xs, &ys))?;
        if let Some(note) = &self.note {
            let at = (MARGIN as i32, (self.legend_lines() as u32 * LEGEND_LINE_HEIGHT + LEGEND_LINE_HEIGHT / 2) as i32);
            let note = truncate(note, ((WIDTH - 2 * MARGIN) / width("n", TEXT_HEIGHT)) as usize);
            text(&lower, &note, at, (TEXT_HEIGHT, FAINT), (HPos::Left, VPos::Center))?;
        }
        self.draw_legend(&lower)
    }

    fn legend_series(&self) -> impl Iterator<Item = &ChartSeries> {
        self.series.iter().filter(|series| series.emphasis != SeriesEmphasis::Faded)
    }

    /// Number of legend entries per line.
    fn legend_columns(&self) -> usize {
        let widest = self
            .legend_series()
            .map(|series| width(&truncate(&series.name, MAX_NAME_CHARS), TEXT_HEIGHT))
            .max()
            .unwrap_or(0);
        ((WIDTH - 2 * MARGIN) / (widest + 44)).max(1) as usize
    }

    fn legend_lines(&self) -> usize {
        self.legend_series().count().min(MAX_LEGEND_ENTRIES).div_ceil(self.legend_columns())
    }

    fn draw_legend<B: DrawingBackend>(&self, area: &PlotArea<B>) -> Result<(), PlotError>
    where
        B::ErrorType: 'static,
    {
        let columns = self.legend_columns();
        let column = (WIDTH - 2 * MARGIN) as usize / columns;
        let all = self.legend_series().count();
        for (place, series) in self.legend_series().take(MAX_LEGEND_ENTRIES).enumerate() {
            let (x, y) = (
                MARGIN as usize + place % columns * column,
                place / columns * LEGEND_LINE_HEIGHT as usize + LEGEND_LINE_HEIGHT as usize / 2,
            );
            let at = (x as i32 + 8, y as i32);
            let (name, last) =
                (truncate(&series.name, MAX_NAME_CHARS), place + 1 == MAX_LEGEND_ENTRIES && all > MAX_LEGEND_ENTRIES);
            let name = if last { format!("and {} more", all - place) } else { name };
            if !last {
                let around = |(dx, dy): &(i32, i32)| (at.0 + dx, at.1 + dy);
                let corners: Vec<(i32, i32)> = series.style.corners(5.0).iter().map(around).collect();
                let (fill, edge) = series.style.styles(0.85);
                let outline: Vec<(i32, i32)> = corners.iter().chain(&corners[..1]).copied().collect();
                area.draw(&Polygon::new(corners, fill))?;
                area.draw(&PathElement::new(outline, edge))?;
            }
            text(area, &name, (at.0 + 16, at.1), (TEXT_HEIGHT, INK), (HPos::Left, VPos::Center))?;
        }
        Ok(())
    }
}

/// Maximum number of legend entries, and of characters per entry.
const MAX_LEGEND_ENTRIES: usize = 48;
const MAX_NAME_CHARS: usize = 44;

type ChartCanvas<'a, B> = ChartContext<'a, super::canvas::PlotBackend<B>, Cartesian2d<AxisScale, AxisScale>>;

impl ChartSeries {
    fn draw<B: DrawingBackend>(
        &self,
        chart: &mut ChartCanvas<'_, B>,
        is_joined: bool,
        size: f64,
    ) -> Result<(), PlotError>
    where
        B::ErrorType: 'static,
    {
        let Self { style: look, points, emphasis: weight, .. } = self;
        if is_joined && points.len() > 1 {
            let along: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
            chart.draw_series([PathElement::new(along, look.color().stroke_width(2))])?;
        }
        let bounds = points.iter().filter_map(|point| Some((point.x, point.bounds?)));
        let bars = bounds.map(|(x, (lo, hi))| PathElement::new(vec![(x, lo), (x, hi)], look.color().mix(0.8)));
        chart.draw_series(bars)?;
        let size = if *weight == SeriesEmphasis::Large { 8.0 } else { size };
        let opacity = if *weight == SeriesEmphasis::Faded { 0.3 } else { 0.85 };
        let corners = look.corners(size);
        let (fill, edge) = look.styles(opacity);
        let outline: Vec<(i32, i32)> = corners.iter().chain(&corners[..1]).copied().collect();
        chart.draw_series(points.iter().map(|point| {
            EmptyElement::at((point.x, point.y))
                + Polygon::new(corners.clone(), fill)
                + PathElement::new(outline.clone(), edge)
        }))?;
        Ok(())
    }
}

impl SeriesStyle {
    /// Fill and outline of a marker.
    fn styles(self, opacity: f64) -> (ShapeStyle, ShapeStyle) {
        let edge: RGBColor = if self.is_hollow() || opacity < 0.5 { self.color() } else { GROUND };
        let fill = if self.is_hollow() { GROUND.to_rgba() } else { self.color().mix(opacity) };
        (fill.filled(), edge.mix(opacity).stroke_width(1))
    }
}

impl ReferenceLine {
    fn draw<B: DrawingBackend>(&self, chart: &mut ChartCanvas<'_, B>) -> Result<(), PlotError>
    where
        B::ErrorType: 'static,
    {
        let ink = INK.stroke_width(2);
        if self.is_dashed {
            chart.draw_series([DashedPathElement::new(self.corners.clone(), 9, 6, ink)])?;
        } else {
            chart.draw_series([PathElement::new(self.corners.clone(), INK.stroke_width(1))])?;
        }
        Ok(())
    }

    /// Ends in pixels.
    fn pixels<B: DrawingBackend>(
        &self,
        chart: &ChartCanvas<'_, B>,
        (xs, ys): (&AxisScale, &AxisScale),
    ) -> Option<PixelLine> {
        let inside = |(x, y): &(f64, f64)| (x.clamp(xs.lo, xs.hi), y.clamp(ys.lo, ys.hi));
        let ends = [inside(self.corners.first()?), inside(self.corners.last()?)];
        Some(ends.map(|end| chart.plotting_area().map_coordinate(&end)))
    }
}

/// Draws the labels of the reference lines.
fn label_rules<B: DrawingBackend>(
    Chart { rules, series, .. }: &Chart,
    chart: &ChartCanvas<'_, B>,
    scales: (&AxisScale, &AxisScale),
) -> Result<(), PlotError>
where
    B::ErrorType: 'static,
{
    let lines: Vec<PixelLine> = rules.iter().filter_map(|rule| rule.pixels(chart, scales)).collect();
    let points = series.iter().flat_map(|series| &series.points);
    let points = points.map(|point| chart.plotting_area().map_coordinate(&(point.x, point.y))).collect();
    let mut labels = LabelPlacer::new(&lines, points, chart.plotting_area().get_x_axis_pixel_range());
    for (rule, line) in rules.iter().zip(lines) {
        let Some(name) = &rule.name else { continue };
        let (x, y) = labels.place(line, width(name, TEXT_HEIGHT) as i32);
        // Positions of the backend are relative to the whole picture, those of the area to its corner.
        let strip = chart.plotting_area().strip_coord_spec();
        let corner = strip.get_base_pixel();
        text(&strip, name, (x - corner.0, y - corner.1), (TEXT_HEIGHT, INK), (HPos::Left, VPos::Top))?;
    }
    Ok(())
}

/// Labels of reference lines, in pixels.
struct LabelPlacer {
    /// Points of the chart and on the reference lines.
    obstacles: Vec<(i32, i32)>,
    /// Left and right end of the plotting area.
    range: Range<i32>,
    /// Left upper corner and width of the labels that are placed already.
    placed: Vec<((i32, i32), i32)>,
}

/// Number of positions of a label along its line, and of the points that represent a line.
const LABEL_STEPS: i32 = 12;
const LINE_SAMPLES: i32 = 200;

/// Ends of a line in pixels.
type PixelLine = [(i32, i32); 2];

impl LabelPlacer {
    fn new(lines: &[PixelLine], mut obstacles: Vec<(i32, i32)>, range: Range<i32>) -> Self {
        let samples =
            |line: &PixelLine| (0..=LINE_SAMPLES).map(|step| along(*line, step, LINE_SAMPLES)).collect::<Vec<_>>();
        obstacles.extend(lines.iter().flat_map(samples));
        Self { obstacles, range, placed: Vec::new() }
    }

    /// Returns the left upper corner of the label of a line: as close to the end of the line as possible, without overlap
    /// with other labels, and over as few lines and points as possible.
    fn place(&mut self, line: PixelLine, width: i32) -> (i32, i32) {
        let height = TEXT_HEIGHT as i32;
        let is_covered = |(x, y): (i32, i32)| {
            let is_over = |((left, top), wide): &((i32, i32), i32)| {
                x < left + wide && *left < x + width && y < top + height && *top < y + height
            };
            self.placed.iter().any(is_over)
        };
        let hidden = |(x, y): (i32, i32)| {
            let is_hidden =
                |(px, py): &&(i32, i32)| (x - 3..=x + width + 3).contains(px) && (y - 3..=y + height + 3).contains(py);
            self.obstacles.iter().filter(is_hidden).count()
        };
        let corners = (0..LABEL_STEPS).flat_map(|step| {
            let (x, y) = along(line, step, LABEL_STEPS);
            let left = (x - 4 - width).max(self.range.start + 4);
            [(left, y - height - 4), (left, y + 4), (x + 4, y + 4)]
        });
        let corners: Vec<(i32, i32)> = corners.filter(|(x, _)| x + width <= self.range.end).collect();
        let free = corners.iter().filter(|at| !is_covered(**at)).min_by_key(|at| hidden(**at));
        let at = free.or(corners.first());
        let (x, mut y) = at.copied().unwrap_or(line[1]);
        while is_covered((x, y)) {
            y -= height;
        }
        self.placed.push(((x, y), width));
        (x, y)
    }
}

/// Point on a line, from its end.
fn along([from, to]: PixelLine, step: i32, steps: i32) -> (i32, i32) {
    let between = |from: i32, to: i32| to + (from - to) * step / steps;
    (between(from.0, to.0), between(from.1, to.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_overlap_neither_labels_nor_lines() {
        let flats = [100, 102, 300].map(|y| [(400, y), (900, y)]);
        let slopes = [400, 440].map(|y| [(50, y + 200), (400, y)]);
        let lines = [flats.as_slice(), &slopes].concat();
        let mut labels = LabelPlacer::new(&lines, vec![(800, 310)], 40..900);
        for line in &lines {
            labels.place(*line, 180);
        }
        let height = TEXT_HEIGHT as i32;
        for (place, ((x, y), width)) in labels.placed.iter().enumerate() {
            assert!(*x >= 40 && x + width <= 900, "{x}");
            for ((left, top), wide) in &labels.placed[..place] {
                assert!(x + width <= *left || left + wide <= *x || y + height <= *top || top + height <= *y);
            }
            for (px, py) in &labels.obstacles {
                assert!(!((*x..=x + width).contains(px) && (*y..=y + height).contains(py)), "{x} {y} on {px} {py}");
            }
        }
        // Equal lines leave no free place.
        let mut labels = LabelPlacer::new(&[[(0, 9), (50, 9)]; 3], Vec::new(), 0..60);
        let corners: Vec<(i32, i32)> = (0..5).map(|_| labels.place([(0, 9), (50, 9)], 40)).collect();
        assert!((0..5).all(|one| !corners[..one].contains(&corners[one])), "{corners:?}");
    }
}
