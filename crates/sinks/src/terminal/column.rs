//! Column of a table that is printed after all rows are known.

use super::{EVEN, escape};

/// Blanks between columns.
pub(super) const GAP: usize = 2;

/// Column with a cell per row.
pub(super) struct TextColumn {
    pub name: String,
    pub cells: Vec<String>,
    /// True for left alignment.
    pub is_text: bool,
    /// Prefix and suffix of a cell that is shown without its column name.
    pub affixes: (&'static str, &'static str),
}

impl TextColumn {
    pub fn right_aligned(name: &str, cells: impl Iterator<Item = String>) -> Self {
        let cells = cells.map(|cell| escape(&cell).into_owned()).collect();
        Self { name: escape(name).into_owned(), cells, is_text: false, affixes: ("", "") }
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

    pub fn described(&self, at: usize) -> Option<String> {
        let (before, after) = self.affixes;
        let cell = Some(&self.cells[at]).filter(|cell| !cell.is_empty())?;
        Some(if cell == EVEN { cell.clone() } else { format!("{before}{cell}{after}") })
    }
}
