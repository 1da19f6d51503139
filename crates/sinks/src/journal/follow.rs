//! Follows a journal that another process writes.

use super::blocks::LineBlocks;
use super::format::{Header, IncomingLine, Resumed, RunSummary, read_first_line, read_later_line};
use super::open;
use crate::SinkError;
use crate::lock::is_same_file;
use calorimeter_case::record::Record;
use std::fs::{File, TryLockError};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Open journal with the current read position.
#[derive(Debug)]
pub struct JournalFollower {
    path: PathBuf,
    file: File,
    header: Header,
    /// Start of the next line, and the number of lines before it.
    next: u64,
    lines: usize,
}

/// Line of a journal after the header.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum JournalLine {
    /// Finished case, or a later record of one.
    Record(Box<Record>),
    /// Resumption of the run.
    Resumed(Resumed),
    /// End of the run, unless it is resumed.
    Summary(RunSummary),
}

impl JournalFollower {
    /// Opens the journal in `dir`, or a journal file, and reads its first line.
    pub fn open(dir: &Path) -> Result<Self, SinkError> {
        let (file, path) = open(dir)?;
        let mut blocks = LineBlocks::starting_small(&file, &path);
        let (header, next) = match blocks.next()?.first() {
            Some(line) => (read_first_line(line.text, line.number, &path)?, line.text.len() as u64 + 1),
            None => return Err(SinkError::NotAJournal { path }),
        };
        Ok(Self { path, file, header, next, lines: 1 })
    }

    /// First line.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Reports every complete line since the last call.
    ///
    /// An incomplete line is left for the next call, since a resumed run truncates it.
    pub fn read(&mut self, mut on_line: impl FnMut(JournalLine)) -> Result<(), SinkError> {
        let unreadable = |cause| SinkError::Read { path: self.path.clone(), cause };
        (&self.file).seek(SeekFrom::Start(self.next)).map_err(unreadable)?;
        let mut blocks = LineBlocks::new(&self.file, &self.path);
        loop {
            let lines = blocks.next()?;
            if lines.is_empty() {
                break;
            }
            for line in lines {
                on_line(match read_later_line(line.text, self.lines + line.number, &self.path)? {
                    IncomingLine::Record(record) => JournalLine::Record(record),
                    IncomingLine::Resumed(resumed) => JournalLine::Resumed(resumed),
                    IncomingLine::Summary(summary) => JournalLine::Summary(summary),
                });
            }
        }
        let (lines, length, _) = blocks.totals();
        (self.next, self.lines) = (self.next + length, self.lines + lines);
        if is_same_file(&self.file, &self.path) {
            Ok(())
        } else {
            Err(SinkError::JournalLost { path: self.path.clone() })
        }
    }

    /// True if no process is writing the journal any more; its last lines may still be unread.
    ///
    /// Always false on file systems without locks.
    pub fn is_abandoned(&self) -> bool {
        // A shared lock, released immediately: a run that is resumed at this moment retries.
        match self.file.try_lock_shared() {
            Ok(()) => self.file.unlock().is_ok(),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
        }
    }
}
