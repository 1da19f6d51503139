//! Plots and their encodings.

use plotters_backend::DrawingBackend;

use super::bars::BarTable;
use super::canvas::{PlotArea, PlotError, pixel_area, svg_area};
use super::chart::Chart;
use super::grid::HeatMapGrid;
use super::palette::GROUND;

/// Plot before rendering.
pub(in crate::report) enum Picture {
    /// Points over two axes.
    Chart(Chart),
    /// Table with bars.
    Bars(BarTable),
    /// Heat map.
    Grid(HeatMapGrid),
}

impl Picture {
    /// Size in pixels.
    pub(super) fn size(&self) -> (u32, u32) {
        match self {
            Self::Chart(chart) => chart.size(),
            Self::Bars(bars) => bars.size(),
            Self::Grid(grid) => grid.size(),
        }
    }

    /// Renders a standalone SVG document.
    pub(super) fn svg(&self) -> Result<String, PlotError> {
        let mut document = String::new();
        self.draw(&svg_area(&mut document, self.size()))?;
        Ok(document)
    }

    /// Renders a PNG.
    pub(super) fn png(&self) -> Result<Vec<u8>, PlotError> {
        let (width, height) = self.size();
        let mut bytes = vec![0; 3 * width as usize * height as usize];
        self.draw(&pixel_area(&mut bytes, (width, height)))?;
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header()?.write_image_data(&bytes)?;
        Ok(file)
    }

    fn draw<B: DrawingBackend>(&self, area: &PlotArea<B>) -> Result<(), PlotError>
    where
        B::ErrorType: 'static,
    {
        area.fill(&GROUND)?;
        match self {
            Self::Chart(chart) => chart.draw(area)?,
            Self::Bars(bars) => bars.draw(area)?,
            Self::Grid(grid) => grid.draw(area)?,
        }
        Ok(area.present()?)
    }
}
