//! Chart with points, lines and intervals over two axes.

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::element::{DashedPathElement, EmptyElement, PathElement, Polygon, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, RGBColor, ShapeStyle};
use plotters_backend::DrawingBackend;
use serde::Serialize;

use super::axis::{AxisScale, ChartAxis};
use super::canvas::{PlotArea, PlotError, TEXT_HEIGHT, TITLE_HEIGHT, style, text, truncate, width};
use super::palette::{FAINT, GROUND, INK, RULE, SeriesStyle};

const WIDTH: u32 = 1200;
const HEIGHT: u32 = 680;
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
        (WIDTH, HEIGHT + self.legend_lines() as u32 * LEGEND_LINE_HEIGHT + MARGIN)
    }

    pub(super) fn draw<B: DrawingBackend>(&self, area: &PlotArea<B>) -> Result<(), PlotError>
    where
        B::ErrorType: 'static,
    {
        let (upper, lower) = area.split_vertically(HEIGHT);
        text(area, &self.title, (MARGIN as i32, 12), (TITLE_HEIGHT, INK), (HPos::Left, VPos::Top))?;
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
            .margin_top(68)
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
        text(area, &self.y.label, (MARGIN as i32, 44), (TEXT_HEIGHT, INK), (HPos::Left, VPos::Top))?;
        for rule in &self.rules {
            rule.draw(&mut drawn, (&xs, &ys))?;
        }
        let size = match points().count() {
            2001.. => 2.5,
            301.. => 3.5,
            _ => 5.0,
        };
        for series in &self.series {
            series.draw(&mut drawn, self.is_joined, size)?;
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
    fn draw<B: DrawingBackend>(
        &self,
        chart: &mut ChartCanvas<'_, B>,
        (xs, ys): (&AxisScale, &AxisScale),
    ) -> Result<(), PlotError>
    where
        B::ErrorType: 'static,
    {
        let ink = INK.stroke_width(2);
        if self.is_dashed {
            chart.draw_series([DashedPathElement::new(self.corners.clone(), 9, 6, ink)])?;
        } else {
            chart.draw_series([PathElement::new(self.corners.clone(), INK.stroke_width(1))])?;
        }
        let (Some(name), Some(&(x, y))) = (&self.name, self.corners.last()) else { return Ok(()) };
        let style = style(TEXT_HEIGHT, INK).pos(Pos::new(HPos::Right, VPos::Bottom));
        let at = (x.clamp(xs.lo, xs.hi), y.clamp(ys.lo, ys.hi));
        chart.draw_series([EmptyElement::at(at) + Text::new(name.clone(), (-4, -4), style)])?;
        Ok(())
    }
}
