//! Columns of a table whose rows are all known.

use super::{Color, bold, escape, paint_verdict};

/// Rank of columns that are never dropped, and of those that are dropped last.
pub(super) const REQUIRED: u8 = 0;
pub(super) const IMPORTANT: u8 = 1;

/// Column with a cell per row.
pub(super) struct TextColumn {
    pub name: String,
    pub cells: Vec<String>,
    pub style: CellStyle,
    /// Blanks before the column.
    pub gap: usize,
    /// Order in which columns are dropped from narrow tables, highest first; [`REQUIRED`] is never dropped.
    pub rank: u8,
}

/// Alignment and color of the cells of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CellStyle {
    /// Right-aligned.
    Number,
    /// Left-aligned.
    Text,
    /// Left-aligned and colored.
    Verdict,
}

impl TextColumn {
    pub(super) fn right_aligned(name: &str, cells: impl Iterator<Item = String>) -> Self {
        let cells = cells.map(|cell| escape(&cell).into_owned()).collect();
        Self { name: escape(name).into_owned(), cells, style: CellStyle::Number, gap: 2, rank: REQUIRED }
    }

    pub(super) fn left_aligned(name: &str, cells: impl Iterator<Item = String>) -> Self {
        Self { style: CellStyle::Text, ..Self::right_aligned(name, cells) }
    }

    /// True if no row has a value.
    pub(super) fn is_empty(&self) -> bool {
        self.cells.iter().all(|cell| cell.is_empty() || cell == "-")
    }

    fn longest(&self) -> usize {
        self.cells.iter().chain([&self.name]).map(|text| text.chars().count()).max().unwrap_or(0)
    }

    fn padded(&self, text: &str, color: Color) -> String {
        let width = self.longest();
        match self.style {
            CellStyle::Number => format!("{text:>width$}"),
            CellStyle::Text => format!("{text:width$}"),
            CellStyle::Verdict => paint_verdict(&format!("{text:width$}"), color),
        }
    }
}

/// Drops columns in the order of their rank until a line fits into `width` characters. Returns the names of the dropped
/// columns.
pub(super) fn drop_columns(columns: &mut Vec<TextColumn>, width: usize) -> Vec<String> {
    let mut dropped = Vec::new();
    let mut ranked: Vec<u8> = columns.iter().map(|column| column.rank).filter(|&rank| rank > REQUIRED).collect();
    ranked.sort_unstable();
    while line_width(columns) > width
        && let Some(rank) = ranked.pop()
        && let Some(at) = columns.iter().rposition(|column| column.rank == rank)
    {
        dropped.insert(0, columns.remove(at).name);
    }
    dropped
}

/// Length of a line.
pub(super) fn line_width(columns: &[TextColumn]) -> usize {
    width_of(columns.iter())
}

/// Length of a line of required and important columns.
pub(super) fn important_width(columns: &[TextColumn]) -> usize {
    width_of(columns.iter().filter(|column| column.rank <= IMPORTANT))
}

fn width_of<'a>(columns: impl Iterator<Item = &'a TextColumn>) -> usize {
    columns.enumerate().map(|(index, column)| column.longest() + if index > 0 { column.gap } else { 0 }).sum()
}

/// Formats the column names.
pub(super) fn header_line(columns: &[TextColumn], color: Color) -> String {
    bold(&line(columns, |column| &column.name, Color::Never), color)
}

/// Formats the cells of a row.
pub(super) fn row_line(columns: &[TextColumn], row: usize, color: Color) -> String {
    line(columns, |column| &column.cells[row], color)
}

fn line(columns: &[TextColumn], cell: impl Fn(&TextColumn) -> &str, color: Color) -> String {
    let mut line = String::new();
    for (index, column) in columns.iter().enumerate() {
        if index > 0 {
            line += &" ".repeat(column.gap);
        }
        line += &column.padded(cell(column), color);
    }
    line.trim_end().to_owned()
}
