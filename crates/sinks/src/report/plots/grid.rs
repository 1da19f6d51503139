//! Heat map of ratios.

use plotters::element::Rectangle;
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, RGBColor};
use plotters_backend::DrawingBackend;

use super::figures::times;
use super::palette::{FAINT, FASTER, GROUND, INK, SLOWER, between};
use super::sheet::{Area, Failed, TEXT, TITLE, shortened, text, width};

const MARGIN: u32 = 16;
const HEAD: u32 = 84;
const LINE: u32 = 28;
/// Maximum number of rows and columns, and of characters per name; the page shows more.
const MOST_ROWS: usize = 60;
const MOST_COLUMNS: usize = 16;
const LETTERS: usize = 40;
const HEAD_LETTERS: usize = 18;

/// Ratios by row and column; cells may be empty.
pub(super) struct Grid {
    pub(super) title: String,
    /// Titles of rows and columns.
    pub(super) axes: [String; 2],
    pub(super) rows: Vec<String>,
    pub(super) columns: Vec<String>,
    /// Mean ratio and number of cases, row by row.
    pub(super) cells: Vec<Vec<Option<(f64, usize)>>>,
}

impl Grid {
    fn rows(&self) -> usize {
        self.rows.len().min(MOST_ROWS)
    }

    fn columns(&self) -> usize {
        self.columns.len().min(MOST_COLUMNS)
    }

    fn corner(&self) -> String {
        let [rows, columns] = &self.axes;
        format!("{rows} \\ {columns}")
    }

    fn name_width(&self) -> u32 {
        let names = self.rows.iter().take(MOST_ROWS).map(|name| width(&shortened(name, LETTERS), TEXT));
        names.max().unwrap_or(0).max(width(&self.corner(), TEXT)) + 12
    }

    fn cell_width(&self) -> u32 {
        let heads = self.columns.iter().take(MOST_COLUMNS).map(|head| width(&shortened(head, HEAD_LETTERS), TEXT));
        let inside = self.cells.iter().flatten().flatten().map(|cell| width(&written(*cell), TEXT));
        heads.chain(inside).max().unwrap_or(0) + 16
    }

    fn cut(&self) -> Option<String> {
        let whole = (self.rows.len(), self.columns.len());
        (whole != (self.rows(), self.columns()))
            .then(|| format!("{} of {} rows and {} of {} columns", self.rows(), whole.0, self.columns(), whole.1))
    }

    pub(super) fn size(&self) -> (u32, u32) {
        let wide = self.name_width() + self.columns() as u32 * self.cell_width();
        let lines = self.rows() as u32 + u32::from(self.cut().is_some());
        (2 * MARGIN + wide.max(width(&self.title, TITLE)), HEAD + lines * LINE + MARGIN)
    }

    pub(super) fn draw<B: DrawingBackend>(&self, area: &Area<B>) -> Result<(), Failed>
    where
        B::ErrorType: 'static,
    {
        let (left, start) = (MARGIN as i32, (MARGIN + self.name_width()) as i32);
        let cell = self.cell_width() as i32;
        text(area, &self.title, (left, 12), (TITLE, INK), (HPos::Left, VPos::Top))?;
        text(area, &self.corner(), (left, HEAD as i32 - 8), (TEXT, FAINT), (HPos::Left, VPos::Bottom))?;
        for (place, head) in self.columns.iter().take(MOST_COLUMNS).enumerate() {
            let at = (start + place as i32 * cell + cell / 2, HEAD as i32 - 8);
            text(area, &shortened(head, HEAD_LETTERS), at, (TEXT, INK), (HPos::Center, VPos::Bottom))?;
        }
        for (line, name) in self.rows.iter().take(MOST_ROWS).enumerate() {
            let top = (HEAD + line as u32 * LINE) as i32;
            let middle = top + LINE as i32 / 2;
            text(area, &shortened(name, LETTERS), (left, middle), (TEXT, INK), (HPos::Left, VPos::Center))?;
            for (place, found) in self.cells[line].iter().take(MOST_COLUMNS).enumerate() {
                let Some(found) = found else { continue };
                let x = start + place as i32 * cell;
                let corners = [(x + 1, top + 1), (x + cell - 1, top + LINE as i32 - 1)];
                area.draw(&Rectangle::new(corners, color(found.0).filled()))?;
                text(area, &written(*found), (x + cell / 2, middle), (TEXT, INK), (HPos::Center, VPos::Center))?;
            }
        }
        if let Some(cut) = self.cut() {
            let middle = (HEAD + self.rows() as u32 * LINE + LINE / 2) as i32;
            text(area, &cut, (left, middle), (TEXT, FAINT), (HPos::Left, VPos::Center))?;
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
    between(GROUND, if far < 0.0 { SLOWER } else { FASTER }, 0.10 + 0.65 * (far.abs() / 2.0).min(1.0))
}

fn written((ratio, cases): (f64, usize)) -> String {
    if cases == 1 { times(ratio) } else { format!("{} of {cases}", times(ratio)) }
}
