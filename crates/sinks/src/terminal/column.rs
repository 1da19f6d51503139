//! A column of a table that is printed when all its rows are there.

use super::NOBODY;

/// Blanks between columns.
pub(super) const GAP: usize = 2;

/// One thing that is told of every row.
pub(super) struct Column {
    pub name: String,
    pub cells: Vec<String>,
    /// Whether its cells begin where they do, instead of ending together.
    pub is_text: bool,
    /// What stands before and after a cell that is told without the name of its column.
    pub words: (&'static str, &'static str),
}

impl Column {
    pub fn of_figures(name: &str, cells: impl Iterator<Item = String>) -> Self {
        Self { name: name.into(), cells: cells.collect(), is_text: false, words: ("", "") }
    }

    /// What it takes of a line, with the gap after it.
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
