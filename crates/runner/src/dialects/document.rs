//! Content of configuration files.

use crate::entries::Entry;
use std::path::PathBuf;

/// Content of one configuration file, or of several combined.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    /// Entries to measure, in order.
    pub entries: Vec<Entry>,
    /// Output folder, if a file sets one.
    pub output_dir: Option<PathBuf>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl Document {
    /// Appends the content of the next file.
    pub(super) fn append(&mut self, mut other: Self) {
        // Export numbers must stay unique.
        let numbers = self.entries.iter().filter_map(|entry| Some(entry.export.as_ref()?.entry + 1));
        let first = numbers.max().unwrap_or(0);
        other.entries.iter_mut().filter_map(|entry| entry.export.as_mut()).for_each(|export| export.entry += first);
        self.entries.append(&mut other.entries);
        self.output_dir = self.output_dir.take().or(other.output_dir);
        self.notes.append(&mut other.notes);
    }
}
