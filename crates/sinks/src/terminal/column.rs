//! Column of a table that is printed after all rows are known.

use super::NOBODY;

/// Blanks between columns.
pub(super) const GAP: usize = 2;

/// Column with a cell per row.
pub(super) struct Column {
    pub name: String,
    pub cells: Vec<String>,
    /// True for left alignment.
    pub is_text: bool,
    /// Prefix and suffix of a cell that is shown without its column name.
    pub words: (&'static str, &'static str),
}

impl Column {
    pub fn of_figures(name: &str, cells: impl Iterator<Item = String>) -> Self {
        Self { name: name.into(), cells: cells.collect(), is_text: false, words: ("", "") }
    }

    /// Width with the following gap.
    pub fn width(&self) -> usize {
        GAP + self.longest()
    }

    fn longest(&self) -> usize {
        self.cells.iter().chain([&self.name]).map(|text| text.chars().count()).max().unwrap_or(0)
    }

    pub fn padded(&self, text: &str) -> String {
        let width = self.longest();
        if self.is_text { format!("{text:width$}") } else { format!("{text:>width$}") }
    }

    pub fn in_words(&self, at: usize) -> Option<String> {
        let (before, after) = self.words;
        let cell = Some(&self.cells[at]).filter(|cell| !cell.is_empty())?;
        Some(if cell == NOBODY { cell.clone() } else { format!("{before}{cell}{after}") })
    }
}
