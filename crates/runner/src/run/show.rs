//! Who is told of a run while it goes on.

use crate::worker::Stage;
use calorimeter_case::Record;

/// What to show while a run goes on.
pub trait Show {
    /// The run begins.
    fn start(&mut self, _cases: usize, _already: usize) {}
    /// A case of a group is being worked on.
    fn touch(&mut self, _id: &str, _stage: Stage) {}
    /// A case has ended; its record is on disk.
    fn record(&mut self, _record: &Record) {}
    /// Whether to stop.
    fn interrupted(&self) -> bool {
        false
    }
}
