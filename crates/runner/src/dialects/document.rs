//! What files ask for.

use crate::entries::Entry;
use std::path::PathBuf;

/// What one file asks for, or several together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    /// What is to be measured, in order.
    pub entries: Vec<Entry>,
    /// Where results go, if a file says so.
    pub output_dir: Option<PathBuf>,
    /// What a reader should know of the files.
    pub notes: Vec<String>,
}

impl Document {
    /// Takes what the next file asks for.
    pub(super) fn append(&mut self, mut other: Self) {
        // Exports are told apart by their number.
        let numbers = self.entries.iter().filter_map(|entry| Some(entry.export.as_ref()?.entry + 1));
        let first = numbers.max().unwrap_or(0);
        other.entries.iter_mut().filter_map(|entry| entry.export.as_mut()).for_each(|export| export.entry += first);
        self.entries.append(&mut other.entries);
        self.output_dir = self.output_dir.take().or(other.output_dir);
        self.notes.append(&mut other.notes);
    }
}
