//! A journal that another process writes, read as it grows.

use super::blocks::Blocks;
use super::format::{Header, LineIn, Resumed, Summary, read_first_line, read_later_line};
use super::open;
use crate::SinkError;
use crate::lock::is_at;
use calorimeter_case::record::Record;
use std::fs::{File, TryLockError};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// An open journal, and how far it was read.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    file: File,
    header: Header,
    /// Where the next line begins, and how many stand before it.
    next: u64,
    lines: usize,
}

/// A later line of a journal.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Followed {
    /// A case has ended, or has ended anew.
    Record(Box<Record>),
    /// The run was taken up again.
    Resumed(Resumed),
    /// The run has come to an end, unless it is taken up again.
    Summary(Summary),
}

impl Follower {
    /// Opens the journal in `dir`, or a journal by its own name, and reads its first line.
    pub fn open(dir: &Path) -> Result<Self, SinkError> {
        let (file, path) = open(dir)?;
        let mut blocks = Blocks::starting_small(&file, &path);
        let (header, next) = match blocks.next()?.first() {
            Some(line) => (read_first_line(line.text, line.number, &path)?, line.text.len() as u64 + 1),
            None => return Err(SinkError::NotAJournal { path }),
        };
        Ok(Self { path, file, header, next, lines: 1 })
    }

    /// The first line.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Tells of every complete line since the last time. One that has no end yet is left for the next, as it is then: a run
    /// that is resumed cuts off what a killed one has left.
    pub fn read(&mut self, mut hear: impl FnMut(Followed)) -> Result<(), SinkError> {
        let unreadable = |cause| SinkError::Read { path: self.path.clone(), cause };
        (&self.file).seek(SeekFrom::Start(self.next)).map_err(unreadable)?;
        let mut blocks = Blocks::of(&self.file, &self.path);
        loop {
            let lines = blocks.next()?;
            if lines.is_empty() {
                break;
            }
            for line in lines {
                hear(match read_later_line(line.text, self.lines + line.number, &self.path)? {
                    LineIn::Record(record) => Followed::Record(record),
                    LineIn::Resumed(resumed) => Followed::Resumed(resumed),
                    LineIn::Summary(summary) => Followed::Summary(summary),
                });
            }
        }
        let (lines, length, _) = blocks.end();
        (self.next, self.lines) = (self.next + length, self.lines + lines);
        if is_at(&self.file, &self.path) { Ok(()) } else { Err(SinkError::JournalLost { path: self.path.clone() }) }
    }

    /// Whether nobody writes it any more. What was written last may still have to be read. Where files have no locks, somebody
    /// always may.
    pub fn is_abandoned(&self) -> bool {
        // Shared, and let go at once: a run that is resumed at this moment asks again.
        match self.file.try_lock_shared() {
            Ok(()) => self.file.unlock().is_ok(),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
        }
    }
}
