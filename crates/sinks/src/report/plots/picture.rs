//! Plots and their encodings.

use plotters::style::text_anchor::{HPos, VPos};
use plotters_backend::DrawingBackend;

use super::bars::BarTable;
use super::canvas::{PlotArea, PlotError, TEXT_HEIGHT, TITLE_HEIGHT, pixel_area, svg_area, text, truncate, width};
use super::chart::Chart;
use super::forest::ForestPlot;
use super::grid::HeatMapGrid;
use super::palette::{FAINT, GROUND, INK};

/// Plot before rendering.
pub(in crate::report) enum Picture {
    /// Points over two axes.
    Chart(Chart),
    /// Table with bars.
    Bars(BarTable),
    /// Heat map.
    Grid(HeatMapGrid),
    /// Forest plot.
    Forest(ForestPlot),
}

const MARGIN: u32 = 16;
/// Height of title and subtitle.
const HEAD_HEIGHT: u32 = 60;
/// Maximum number of characters of the subtitle.
const MAX_SUBTITLE_CHARS: usize = 140;

impl Picture {
    fn title(&self) -> &str {
        match self {
            Self::Chart(chart) => &chart.title,
            Self::Bars(bars) => &bars.title,
            Self::Grid(grid) => &grid.title,
            Self::Forest(_) => "Speed-ups with 95 % intervals",
        }
    }

    /// Size in pixels, with title and subtitle.
    fn size(&self, subtitle: &str) -> (u32, u32) {
        let (wide, high) = match self {
            Self::Chart(chart) => chart.size(),
            Self::Bars(bars) => bars.size(),
            Self::Grid(grid) => grid.size(),
            Self::Forest(forest) => forest.size(),
        };
        let head = width(self.title(), TITLE_HEIGHT).max(width(&truncate(subtitle, MAX_SUBTITLE_CHARS), TEXT_HEIGHT));
        (wide.max(head + 2 * MARGIN), high + HEAD_HEIGHT)
    }

    /// Renders a standalone SVG document.
    pub(super) fn svg(&self, subtitle: &str) -> Result<String, PlotError> {
        let mut document = String::new();
        self.draw(&svg_area(&mut document, self.size(subtitle)), subtitle)?;
        Ok(document)
    }

    /// Renders a PNG.
    pub(super) fn png(&self, subtitle: &str) -> Result<Vec<u8>, PlotError> {
        let (width, height) = self.size(subtitle);
        let mut bytes = vec![0; 3 * width as usize * height as usize];
        self.draw(&pixel_area(&mut bytes, (width, height)), subtitle)?;
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header()?.write_image_data(&bytes)?;
        Ok(file)
    }

    fn draw<B: DrawingBackend>(&self, area: &PlotArea<B>, subtitle: &str) -> Result<(), PlotError>
    where
        B::ErrorType: 'static,
    {
        area.fill(&GROUND)?;
        let (head, body) = area.split_vertically(HEAD_HEIGHT);
        let left = MARGIN as i32;
        text(&head, self.title(), (left, 10), (TITLE_HEIGHT, INK), (HPos::Left, VPos::Top))?;
        let subtitle = truncate(subtitle, MAX_SUBTITLE_CHARS);
        text(&head, &subtitle, (left, 36), (TEXT_HEIGHT, FAINT), (HPos::Left, VPos::Top))?;
        match self {
            Self::Chart(chart) => chart.draw(&body)?,
            Self::Bars(bars) => bars.draw(&body)?,
            Self::Grid(grid) => grid.draw(&body)?,
            Self::Forest(forest) => forest.draw(&body)?,
        }
        Ok(area.present()?)
    }
}
