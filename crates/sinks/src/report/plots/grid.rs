//! Heat map of ratios.

use plotters::element::Rectangle;
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, RGBColor};
use plotters_backend::DrawingBackend;

use super::canvas::{PlotArea, PlotError, TEXT_HEIGHT, text, truncate, width};
use super::palette::{FAINT, FASTER, GROUND, INK, SLOWER, interpolate};
use crate::report::number_format::NumberFormat;

const MARGIN: u32 = 16;
const HEADER_HEIGHT: u32 = 36;
const ROW_HEIGHT: u32 = 28;
/// Maximum number of rows and columns, and of characters per name; the page shows more.
const MAX_ROWS: usize = 60;
const MAX_COLUMNS: usize = 16;
const MAX_NAME_CHARS: usize = 40;
const MAX_HEADER_CHARS: usize = 18;

/// Ratios by row and column; cells may be empty.
pub(in crate::report) struct HeatMapGrid {
    pub(super) title: String,
    /// Titles of rows and columns.
    pub(super) axes: [String; 2],
    pub(super) rows: Vec<String>,
    pub(super) columns: Vec<String>,
    /// Mean ratio and number of cases, row by row.
    pub(super) cells: Vec<Vec<Option<(f64, usize)>>>,
}

impl HeatMapGrid {
    fn visible_rows(&self) -> usize {
        self.rows.len().min(MAX_ROWS)
    }

    fn visible_columns(&self) -> usize {
        self.columns.len().min(MAX_COLUMNS)
    }

    fn corner(&self) -> String {
        let [rows, columns] = &self.axes;
        format!("{rows} \\ {columns}")
    }

    fn name_width(&self) -> u32 {
        let names = self.rows.iter().take(MAX_ROWS).map(|name| width(&truncate(name, MAX_NAME_CHARS), TEXT_HEIGHT));
        names.max().unwrap_or(0).max(width(&self.corner(), TEXT_HEIGHT)) + 12
    }

    fn cell_width(&self) -> u32 {
        let heads =
            self.columns.iter().take(MAX_COLUMNS).map(|head| width(&truncate(head, MAX_HEADER_CHARS), TEXT_HEIGHT));
        let inside = self.cells.iter().flatten().flatten().map(|cell| width(&cell_text(*cell), TEXT_HEIGHT));
        heads.chain(inside).max().unwrap_or(0) + 16
    }

    fn truncation_note(&self) -> Option<String> {
        let whole = (self.rows.len(), self.columns.len());
        (whole != (self.visible_rows(), self.visible_columns())).then(|| {
            format!("{} of {} rows and {} of {} columns", self.visible_rows(), whole.0, self.visible_columns(), whole.1)
        })
    }

    pub(super) fn size(&self) -> (u32, u32) {
        let wide = self.name_width() + self.visible_columns() as u32 * self.cell_width();
        let lines = self.visible_rows() as u32 + u32::from(self.truncation_note().is_some());
        (2 * MARGIN + wide, HEADER_HEIGHT + lines * ROW_HEIGHT + MARGIN)
    }

    pub(super) fn draw<B: DrawingBackend>(&self, area: &PlotArea<B>) -> Result<(), PlotError>
    where
        B::ErrorType: 'static,
    {
        let (left, start) = (MARGIN as i32, (MARGIN + self.name_width()) as i32);
        let cell = self.cell_width() as i32;
        text(area, &self.corner(), (left, HEADER_HEIGHT as i32 - 8), (TEXT_HEIGHT, FAINT), (HPos::Left, VPos::Bottom))?;
        for (place, head) in self.columns.iter().take(MAX_COLUMNS).enumerate() {
            let at = (start + place as i32 * cell + cell / 2, HEADER_HEIGHT as i32 - 8);
            text(area, &truncate(head, MAX_HEADER_CHARS), at, (TEXT_HEIGHT, INK), (HPos::Center, VPos::Bottom))?;
        }
        for (line, name) in self.rows.iter().take(MAX_ROWS).enumerate() {
            let top = (HEADER_HEIGHT + line as u32 * ROW_HEIGHT) as i32;
            let middle = top + ROW_HEIGHT as i32 / 2;
            text(
                area,
                &truncate(name, MAX_NAME_CHARS),
                (left, middle),
                (TEXT_HEIGHT, INK),
                (HPos::Left, VPos::Center),
            )?;
            for (place, found) in self.cells[line].iter().take(MAX_COLUMNS).enumerate() {
                let Some(found) = found else { continue };
                let x = start + place as i32 * cell;
                let corners = [(x + 1, top + 1), (x + cell - 1, top + ROW_HEIGHT as i32 - 1)];
                area.draw(&Rectangle::new(corners, color(found.0).filled()))?;
                text(
                    area,
                    &cell_text(*found),
                    (x + cell / 2, middle),
                    (TEXT_HEIGHT, INK),
                    (HPos::Center, VPos::Center),
                )?;
            }
        }
        if let Some(cut) = self.truncation_note() {
            let middle = (HEADER_HEIGHT + self.visible_rows() as u32 * ROW_HEIGHT + ROW_HEIGHT / 2) as i32;
            text(area, &cut, (left, middle), (TEXT_HEIGHT, FAINT), (HPos::Left, VPos::Center))?;
        }
        Ok(())
    }
}

/// Blue for faster and orange for slower; more saturated with the distance from 1.
fn color(ratio: f64) -> RGBColor {
    let far = ratio.log2();
    if far.abs() <= 0.02 {
        return GROUND;
    }
    interpolate(GROUND, if far < 0.0 { SLOWER } else { FASTER }, 0.10 + 0.65 * (far.abs() / 2.0).min(1.0))
}

fn cell_text((ratio, cases): (f64, usize)) -> String {
    if cases == 1 {
        NumberFormat::Ratio.write(ratio)
    } else {
        format!("{} ({cases})", NumberFormat::Ratio.write(ratio))
    }
}
