//! What can be drawn.

use plotters_backend::DrawingBackend;

use super::bars::Bars;
use super::chart::Chart;
use super::grid::Grid;
use super::palette::GROUND;
use super::sheet::{Area, Failed, pixels, vectors};

/// A picture, as what it says and not yet as lines.
pub(super) enum Picture {
    /// Points over two axes.
    Chart(Chart),
    /// A table whose figures are bars.
    Bars(Bars),
    /// Ratios over two axes of names.
    Grid(Grid),
}

impl Picture {
    /// In pixels.
    pub(super) fn size(&self) -> (u32, u32) {
        match self {
            Self::Chart(chart) => chart.size(),
            Self::Bars(bars) => bars.size(),
            Self::Grid(grid) => grid.size(),
        }
    }

    /// As a document of its own.
    pub(super) fn svg(&self) -> Result<String, Failed> {
        let mut document = String::new();
        self.draw(&vectors(&mut document, self.size()))?;
        Ok(document)
    }

    /// As a PNG.
    pub(super) fn png(&self) -> Result<Vec<u8>, Failed> {
        let (width, height) = self.size();
        let mut bytes = vec![0; 3 * width as usize * height as usize];
        self.draw(&pixels(&mut bytes, (width, height)))?;
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header()?.write_image_data(&bytes)?;
        Ok(file)
    }

    fn draw<B: DrawingBackend>(&self, area: &Area<B>) -> Result<(), Failed>
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
