//! Table with bars.

use plotters::element::{PathElement, Rectangle};
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, VPos};
use plotters_backend::DrawingBackend;

use super::palette::{FAINT, FASTER, INK, RULE, SLOWER};
use super::sheet::{Area, Failed, TEXT, TITLE, shortened, text, width};

const MARGIN: u32 = 16;
const HEAD: u32 = 84;
const LINE: u32 = 26;
/// Maximum length of a bar.
const BAR: u32 = 150;
const GAP: u32 = 28;
/// Maximum number of lines and of characters per name; the page shows more.
const MOST: usize = 60;
const LETTERS: usize = 48;

/// Table with a line per item and a column per quantity.
pub(super) struct Bars {
    pub(super) title: String,
    pub(super) columns: Vec<Column>,
    pub(super) lines: Vec<Line>,
}

pub(super) struct Column {
    pub(super) head: String,
    pub(super) length: Length,
}

/// Quantity shown by the length of a bar.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Length {
    /// Distance of a ratio from 1, where 2 and 1/2 are equally far.
    Ratio,
    /// Value relative to the maximum of its column.
    Amount,
    /// No bar.
    None,
}

pub(super) struct Line {
    pub(super) name: String,
    /// Value and its text for each column.
    pub(super) figures: Vec<Option<(f64, String)>>,
}

impl Bars {
    /// Removes columns without values.
    pub(super) fn without_empty(mut self) -> Self {
        let is_used: Vec<bool> =
            (0..self.columns.len()).map(|place| self.lines.iter().any(|line| line.figures[place].is_some())).collect();
        for line in &mut self.lines {
            let mut used = is_used.iter();
            line.figures.retain(|_| used.next() == Some(&true));
        }
        let mut used = is_used.iter();
        self.columns.retain(|_| used.next() == Some(&true));
        self
    }

    fn shown(&self) -> usize {
        self.lines.len().min(MOST)
    }

    fn name_width(&self) -> u32 {
        self.lines.iter().take(MOST).map(|line| width(&shortened(&line.name, LETTERS), TEXT)).max().unwrap_or(0)
    }

    /// Width of the texts of a column, and of the whole column.
    fn widths(&self, place: usize) -> (u32, u32) {
        let written = self.lines.iter().take(MOST).filter_map(|line| line.figures[place].as_ref());
        let figures = written.map(|(_, text)| width(text, TEXT)).max().unwrap_or(0);
        let bar = if self.columns[place].length == Length::None { 0 } else { BAR + 10 };
        (figures, (figures + bar).max(width(&self.columns[place].head, TEXT)))
    }

    pub(super) fn size(&self) -> (u32, u32) {
        let columns: u32 = (0..self.columns.len()).map(|place| self.widths(place).1 + GAP).sum();
        let wide = (2 * MARGIN + self.name_width() + columns).max(2 * MARGIN + width(&self.title, TITLE));
        let cut = u32::from(self.lines.len() > MOST);
        (wide, HEAD + (self.shown() as u32 + cut) * LINE + MARGIN)
    }

    pub(super) fn draw<B: DrawingBackend>(&self, area: &Area<B>) -> Result<(), Failed>
    where
        B::ErrorType: 'static,
    {
        text(area, &self.title, (MARGIN as i32, 12), (TITLE, INK), (HPos::Left, VPos::Top))?;
        let middle = |line: usize| (HEAD + line as u32 * LINE + LINE / 2) as i32;
        for (place, line) in self.lines.iter().take(MOST).enumerate() {
            let name = shortened(&line.name, LETTERS);
            text(area, &name, (MARGIN as i32, middle(place)), (TEXT, INK), (HPos::Left, VPos::Center))?;
        }
        if self.lines.len() > MOST {
            let more = format!("and {} more", self.lines.len() - MOST);
            text(area, &more, (MARGIN as i32, middle(MOST)), (TEXT, FAINT), (HPos::Left, VPos::Center))?;
        }
        let right = self.size().0 as i32 - MARGIN as i32;
        area.draw(&PathElement::new(vec![(MARGIN as i32, HEAD as i32 - 4), (right, HEAD as i32 - 4)], RULE))?;
        let mut left = MARGIN + self.name_width() + GAP;
        for (place, column) in self.columns.iter().enumerate() {
            let (figures, whole) = self.widths(place);
            text(area, &column.head, (left as i32, HEAD as i32 - 12), (TEXT, FAINT), (HPos::Left, VPos::Bottom))?;
            let shown = self.lines.iter().take(MOST).map(|line| line.figures[place].as_ref());
            let largest = shown.clone().flatten().map(|(figure, _)| *figure).fold(0.0, f64::max);
            for (line, figure) in shown.enumerate() {
                let Some((figure, written)) = figure else { continue };
                let end = (left + figures) as i32;
                text(area, written, (end, middle(line)), (TEXT, INK), (HPos::Right, VPos::Center))?;
                let (share, color) = match column.length {
                    Length::Ratio if *figure < 1.0 => (figure.log2().abs() / 4.0, SLOWER),
                    Length::Ratio => (figure.log2() / 4.0, FASTER),
                    Length::Amount => (figure / largest, FASTER),
                    Length::None => continue,
                };
                let length = (share.clamp(0.0, 1.0) * f64::from(BAR)).round() as i32;
                let corners = [(end + 10, middle(line) - 7), (end + 10 + length, middle(line) + 7)];
                area.draw(&Rectangle::new(corners, color.filled()))?;
            }
            left += whole + GAP;
        }
        Ok(())
    }
}
