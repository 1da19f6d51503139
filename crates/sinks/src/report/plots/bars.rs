//! Table with bars.

use plotters::element::{PathElement, Rectangle};
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, VPos};
use plotters_backend::DrawingBackend;
use serde::Serialize;

use super::canvas::{PlotArea, PlotError, TEXT_HEIGHT, text, truncate, width};
use super::palette::{FAINT, FASTER, INK, RULE, SLOWER};

const MARGIN: u32 = 16;
const HEADER_HEIGHT: u32 = 36;
const ROW_HEIGHT: u32 = 26;
/// Maximum length of a bar.
const MAX_BAR_WIDTH: u32 = 150;
const GAP: u32 = 28;
/// Maximum number of lines and of characters per name; the page shows more.
const MAX_ROWS: usize = 60;
const MAX_NAME_CHARS: usize = 48;

/// Table with a line per item and a column per quantity.
#[derive(Serialize)]
pub(in crate::report) struct BarTable {
    pub(in crate::report) title: String,
    /// Heading of the names.
    pub(in crate::report) heading: String,
    pub(in crate::report) columns: Vec<BarColumn>,
    pub(in crate::report) rows: Vec<BarRow>,
}

#[derive(Serialize)]
pub(in crate::report) struct BarColumn {
    pub(in crate::report) header: String,
    pub(in crate::report) length: BarLength,
}

/// Quantity shown by the length of a bar.
#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::report) enum BarLength {
    /// Distance of a ratio from 1, where 2 and 1/2 are equally far.
    Ratio,
    /// Value relative to the maximum of its column.
    Amount,
    /// No bar.
    None,
}

#[derive(Serialize)]
pub(in crate::report) struct BarRow {
    pub(in crate::report) name: String,
    /// Value and its text for each column.
    pub(in crate::report) values: Vec<Option<(f64, String)>>,
}

impl BarTable {
    /// Removes columns without values.
    pub(in crate::report) fn without_empty_columns(mut self) -> Self {
        let is_used: Vec<bool> =
            (0..self.columns.len()).map(|place| self.rows.iter().any(|line| line.values[place].is_some())).collect();
        for line in &mut self.rows {
            let mut used = is_used.iter();
            line.values.retain(|_| used.next() == Some(&true));
        }
        let mut used = is_used.iter();
        self.columns.retain(|_| used.next() == Some(&true));
        self
    }

    fn visible_rows(&self) -> usize {
        self.rows.len().min(MAX_ROWS)
    }

    fn name_width(&self) -> u32 {
        let names =
            self.rows.iter().take(MAX_ROWS).map(|line| width(&truncate(&line.name, MAX_NAME_CHARS), TEXT_HEIGHT));
        names.max().unwrap_or(0).max(width(&self.heading, TEXT_HEIGHT))
    }

    /// Width of the texts of a column, and of the whole column.
    fn widths(&self, place: usize) -> (u32, u32) {
        let written = self.rows.iter().take(MAX_ROWS).filter_map(|line| line.values[place].as_ref());
        let figures = written.map(|(_, text)| width(&truncate(text, MAX_NAME_CHARS), TEXT_HEIGHT)).max().unwrap_or(0);
        let bar = if self.columns[place].length == BarLength::None { 0 } else { MAX_BAR_WIDTH + 10 };
        (figures, (figures + bar).max(width(&self.columns[place].header, TEXT_HEIGHT)))
    }

    pub(super) fn size(&self) -> (u32, u32) {
        let columns: u32 = (0..self.columns.len()).map(|place| self.widths(place).1 + GAP).sum();
        let wide = 2 * MARGIN + self.name_width() + columns;
        let cut = u32::from(self.rows.len() > MAX_ROWS);
        (wide, HEADER_HEIGHT + (self.visible_rows() as u32 + cut) * ROW_HEIGHT + MARGIN)
    }

    pub(super) fn draw<B: DrawingBackend>(&self, area: &PlotArea<B>) -> Result<(), PlotError>
    where
        B::ErrorType: 'static,
    {
        let middle = |line: usize| (HEADER_HEIGHT + line as u32 * ROW_HEIGHT + ROW_HEIGHT / 2) as i32;
        for (place, line) in self.rows.iter().take(MAX_ROWS).enumerate() {
            let name = truncate(&line.name, MAX_NAME_CHARS);
            text(area, &name, (MARGIN as i32, middle(place)), (TEXT_HEIGHT, INK), (HPos::Left, VPos::Center))?;
        }
        if self.rows.len() > MAX_ROWS {
            let more = format!("and {} more", self.rows.len() - MAX_ROWS);
            text(area, &more, (MARGIN as i32, middle(MAX_ROWS)), (TEXT_HEIGHT, FAINT), (HPos::Left, VPos::Center))?;
        }
        let right = self.size().0 as i32 - MARGIN as i32;
        area.draw(&PathElement::new(
            vec![(MARGIN as i32, HEADER_HEIGHT as i32 - 4), (right, HEADER_HEIGHT as i32 - 4)],
            RULE,
        ))?;
        let at = (MARGIN as i32, HEADER_HEIGHT as i32 - 12);
        text(area, &self.heading, at, (TEXT_HEIGHT, FAINT), (HPos::Left, VPos::Bottom))?;
        let mut left = MARGIN + self.name_width() + GAP;
        for (place, column) in self.columns.iter().enumerate() {
            let (figures, whole) = self.widths(place);
            text(
                area,
                &column.header,
                (left as i32, HEADER_HEIGHT as i32 - 12),
                (TEXT_HEIGHT, FAINT),
                (HPos::Left, VPos::Bottom),
            )?;
            let shown = self.rows.iter().take(MAX_ROWS).map(|line| line.values[place].as_ref());
            let largest = shown.clone().flatten().map(|(figure, _)| *figure).fold(0.0, f64::max);
            for (line, figure) in shown.enumerate() {
                let Some((figure, written)) = figure else { continue };
                let end = (left + figures) as i32;
                text(
                    area,
                    &truncate(written, MAX_NAME_CHARS),
                    (end, middle(line)),
                    (TEXT_HEIGHT, INK),
                    (HPos::Right, VPos::Center),
                )?;
                let (share, color) = match column.length {
                    BarLength::Ratio if *figure < 1.0 => (figure.log2().abs() / 4.0, SLOWER),
                    BarLength::Ratio => (figure.log2() / 4.0, FASTER),
                    BarLength::Amount => (figure / largest, FASTER),
                    BarLength::None => continue,
                };
                let length = (share.clamp(0.0, 1.0) * f64::from(MAX_BAR_WIDTH)).round() as i32;
                let corners = [(end + 10, middle(line) - 7), (end + 10 + length, middle(line) + 7)];
                area.draw(&Rectangle::new(corners, color.filled()))?;
            }
            left += whole + GAP;
        }
        Ok(())
    }
}
