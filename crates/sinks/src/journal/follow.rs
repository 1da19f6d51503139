//! Follows a journal that another process writes.

use super::blocks::Blocks;
use super::format::{Header, LineIn, Resumed, Summary, read_first_line, read_later_line};
use super::open;
use crate::SinkError;
use crate::lock::is_at;
use calorimeter_case::record::Record;
use std::fs::{File, TryLockError};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Open journal with the current read position.
#[derive(Debug)]
pub struct Follower {
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
pub enum Followed {
    /// Finished case, or a later record of one.
    Record(Box<Record>),
    /// Resumption of the run.
    Resumed(Resumed),
    /// End of the run, unless it is resumed.
    Summary(Summary),
}

impl Follower {
    /// Opens the journal in `dir`, or a journal file, and reads its first line.
    pub fn open(dir: &Path) -> Result<Self, SinkError> {
        let (file, path) = open(dir)?;
        let mut blocks = Blocks::starting_small(&file, &path);
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
    pub fn read(&mut self, mut on_line: impl FnMut(Followed)) -> Result<(), SinkError> {
        let unreadable = |cause| SinkError::Read { path: self.path.clone(), cause };
        (&self.file).seek(SeekFrom::Start(self.next)).map_err(unreadable)?;
        let mut blocks = Blocks::of(&self.file, &self.path);
        loop {
            let lines = blocks.next()?;
            if lines.is_empty() {
                break;
            }
            for line in lines {
                on_line(match read_later_line(line.text, self.lines + line.number, &self.path)? {
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
