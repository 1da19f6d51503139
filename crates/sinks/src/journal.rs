//! `journal.jsonl`: all results of a run, on disk before the next case starts.
//!
//! The first line is the [`Header`], followed by one line `{"record": {…}}` per finished case. A resumed run has a line
//! `{"resumed": {…}}`. The last line of a finished run is `{"summary": {…}}`. Readers ignore unknown fields. If a case
//! has several records, the last one counts; the last summary counts likewise.
//!
//! A killed writer may leave an incomplete last line, which costs that one record: [`read`] skips it and
//! [`Journal::resume`] truncates it, both with a [`JournalWarning`]. Other damage is an error that names the line,
//! because skipping it would hide it.

mod blocks;
mod follow;
pub(crate) mod format;

pub use follow::{JournalFollower, JournalLine};
pub use format::{Header, Resumed, RunSummary};

use crate::lock::{is_same_file, lock};
use crate::record_part::RecordPart;
use crate::series_store::{LineSpan, SeriesStore};
use crate::{SinkError, atomic, stale_files};
use blocks::{LineBlocks, MAX_LINE_BYTES};
use calorimeter_case::record::{Record, Status};
use calorimeter_case::{CaseId, too_large_error};
use chrono::Local;
use format::{
    IncomingLine, OutgoingLine, encode_first_line, encode_line, encode_record, read_first_line, read_later_line,
};
use rustix::fs::OFlags;
use serde::de::DeserializeOwned;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// File name of the journal in the directory of a run.
pub const JOURNAL_FILE: &str = "journal.jsonl";

/// Timeout for a lock held by a process that is about to release it.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// Counts records by status; statuses without records are not listed.
pub fn count_by_status(records: &[Record]) -> BTreeMap<Status, u64> {
    let mut counts = BTreeMap::new();
    for record in records {
        *counts.entry(record.outcome.status).or_default() += 1;
    }
    counts
}

/// Contents of a journal; `R` is the part of each record that the reader requested.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalContents<R = Record> {
    /// First line.
    pub header: Header,
    /// Last record of each case, ordered by the first record of the case.
    pub records: Vec<R>,
    /// Resumptions of the run.
    pub resumed: Vec<Resumed>,
    /// Last summary, if the run finished after the last resumption.
    pub summary: Option<RunSummary>,
    /// Skipped lines.
    pub warnings: Vec<JournalWarning>,
}

/// Part of a journal that was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JournalWarning {
    /// Last line without line feed, as a killed writer leaves it.
    IncompleteLastLine {
        /// Line number, starting at 1.
        line: usize,
        /// Length of the line.
        bytes: u64,
    },
}

impl fmt::Display for JournalWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalWarning::IncompleteLastLine { line, bytes } => {
                write!(
                    f,
                    "the last line of the journal ({line}, {bytes} bytes) is incomplete and was skipped; its case must run again"
                )
            }
        }
    }
}

/// Open journal of a running run, locked against other processes.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Length up to the last complete line.
    length: u64,
    /// Last record of each case.
    records: HashMap<CaseId, LineSpan>,
}

impl Journal {
    /// Creates the journal of a new run in `dir`; an error if there is one.
    pub fn create(dir: &Path, header: &Header) -> Result<Journal, SinkError> {
        check_writable(dir)?;
        let path = dir.join(JOURNAL_FILE);
        let line = encode_first_line(&path, header)?;
        check_line_length(&line, MAX_LINE_BYTES, &path)?;
        // The file is renamed after header and lock are in place, so no process sees a partial journal.
        let mut temporary = atomic::temporary_in(dir).map_err(|cause| SinkError::write(&path, cause))?;
        lock(temporary.as_file(), &path, LOCK_TIMEOUT)?;
        temporary.write_all(&line).map_err(|cause| SinkError::write(&path, cause))?;
        temporary.as_file().sync_all().map_err(|cause| SinkError::write(&path, cause))?;
        let file = temporary.persist_noclobber(&path).map_err(|failed| match failed.error.kind() {
            io::ErrorKind::AlreadyExists => SinkError::JournalExists { path: path.clone() },
            _ => SinkError::write(&path, failed.error),
        })?;
        atomic::sync_dir(dir);
        Ok(Journal { path, file, length: line.len() as u64, records: HashMap::new() })
    }

    /// Resumes the run in `dir` and appends a line about it. The configuration fingerprint must match.
    ///
    /// The time series of its records stay on disk; [`finish`](Self::finish) returns access to them.
    pub fn resume(dir: &Path, fingerprint: &str, resumed: &Resumed) -> Result<(Journal, JournalContents), SinkError> {
        let path = dir.join(JOURNAL_FILE);
        let mut options = File::options();
        // The directory may come from someone else and must not redirect to another file.
        options.read(true).append(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let file = options.open(&path).map_err(|cause| match cause.kind() {
            io::ErrorKind::NotFound => SinkError::JournalMissing { path: path.clone(), cause },
            _ => SinkError::Write { path: path.clone(), cause },
        })?;
        lock(&file, &path, LOCK_TIMEOUT)?;
        let (mut contents, length, records) = read_from(&file, &path, without_series)?.into_parts();
        let found = &contents.header.config_fingerprint;
        if found != fingerprint {
            return Err(SinkError::OtherConfig { path, found: found.clone(), given: fingerprint.into() });
        }
        stale_files::remove_stale_in_run(dir);
        file.set_len(length).map_err(|cause| SinkError::write(&path, cause))?;
        let mut journal = Journal { path, file, length, records };
        journal.append_line(&OutgoingLine::Resumed(resumed))?;
        contents.resumed.push(resumed.clone());
        contents.summary = None;
        Ok((journal, contents))
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends the record of a finished case. On return the operating system has it at the expected path.
    ///
    /// Returns the record as stored if its time series exceeded the maximum line length: without them, and with a
    /// warning.
    pub fn append(&mut self, record: &Record) -> Result<Option<Record>, SinkError> {
        let (line, shortened) = encode_record(&self.path, record, MAX_LINE_BYTES)?;
        let line = self.write_line(&line)?;
        self.records.insert(record.case.id.clone(), line);
        Ok(shortened)
    }

    /// Appends the summary, syncs the file and releases the lock. Returns access to the stored records.
    pub fn finish(mut self, summary: &RunSummary) -> Result<SeriesStore, SinkError> {
        self.append_line(&OutgoingLine::Summary(summary))?;
        self.file.sync_all().map_err(|cause| SinkError::write(&self.path, cause))?;
        // Temporary files of killed workers.
        self.path.parent().into_iter().for_each(stale_files::remove_stale_in_run);
        // Fails only without lock support.
        let _ = self.file.unlock();
        Ok(SeriesStore::new(self.path, self.file, self.records))
    }

    /// Finishes the run with a summary of the stored records. [`SinkInput::read`](crate::SinkInput::read) then reads
    /// them for [`write_all`](crate::write_all).
    ///
    /// The run counts as interrupted if fewer cases were recorded than planned. The summary has no notes and no mean
    /// speed-ups; [`finish`](Self::finish) takes a custom one.
    pub fn finish_now(self) -> Result<SeriesStore, SinkError> {
        let (JournalContents { header, records, .. }, _) = read_stored(&self.path)?;
        self.finish(&RunSummary {
            finished: Local::now().to_rfc3339(),
            interrupted: header.plan_cases.is_some_and(|planned| (records.len() as u64) < planned),
            counts: count_by_status(&records),
            notes: Vec::new(),
            suite: Vec::new(),
        })
    }

    fn append_line(&mut self, line: &OutgoingLine<'_>) -> Result<LineSpan, SinkError> {
        self.write_line(&encode_line(&self.path, line)?)
    }

    fn write_line(&mut self, bytes: &[u8]) -> Result<LineSpan, SinkError> {
        check_line_length(bytes, MAX_LINE_BYTES, &self.path)?;
        match self.file.write_all(bytes) {
            Ok(()) => {
                let line = LineSpan { start: self.length, bytes: bytes.len() as u64 };
                self.length += line.bytes;
                if is_same_file(&self.file, &self.path) {
                    Ok(line)
                } else {
                    Err(SinkError::JournalLost { path: self.path.clone() })
                }
            }
            Err(cause) => {
                // Part of the line may have been written; the next record must not be appended to it.
                let _ = self.file.set_len(self.length);
                Err(SinkError::write(&self.path, cause))
            }
        }
    }
}

/// Reads the journal in `dir`, or a journal file; finished or not, even while it is being written.
pub fn read(dir: &Path) -> Result<JournalContents, SinkError> {
    read_trimmed(dir, |_| {})
}

/// Reads a journal and applies `trim` to each record, which drops fields that the reader does not need.
pub fn read_trimmed(dir: &Path, trim: impl Fn(&mut Record) + Sync) -> Result<JournalContents, SinkError> {
    let trimmed = |mut record: Record| {
        trim(&mut record);
        record
    };
    read_mapped(dir, trimmed)
}

/// Reads a journal and converts each record.
pub fn read_mapped<R: Send>(dir: &Path, convert: impl Fn(Record) -> R + Sync) -> Result<JournalContents<R>, SinkError> {
    let (file, path) = open(dir)?;
    let keep = |record: Box<Record>| (record.case.id.clone(), convert(*record));
    Ok(read_from(&file, &path, keep)?.contents)
}

/// Reads a journal without time series; the second result gives access to them on disk.
pub fn read_stored(dir: &Path) -> Result<(JournalContents, SeriesStore), SinkError> {
    let (file, path) = open(dir)?;
    let (contents, _, records) = read_from(&file, &path, without_series)?.into_parts();
    Ok((contents, SeriesStore::new(path, file, records)))
}

/// Reads a part of each record. Fields outside that part are not validated.
pub fn read_parts<P: RecordPart>(dir: &Path) -> Result<JournalContents<P>, SinkError> {
    let (file, path) = open(dir)?;
    Ok(read_from(&file, &path, |part: P| (part.id().clone(), part))?.contents)
}

fn without_series(mut record: Box<Record>) -> (CaseId, Record) {
    drop(record.take_series());
    (record.case.id.clone(), *record)
}

/// Writes the contents of a journal to `path` atomically, replacing an existing file.
pub fn write_copy(contents: &JournalContents, path: &Path) -> Result<(), SinkError> {
    atomic::write_with(path, |file| {
        let mut file = BufWriter::new(file);
        let mut put = |line: Vec<u8>| file.write_all(&line).map_err(|cause| SinkError::write(path, cause));
        put(encode_first_line(path, &contents.header)?)?;
        contents.records.iter().try_for_each(|record| put(encode_line(path, &OutgoingLine::Record(record))?))?;
        contents.resumed.iter().try_for_each(|resumed| put(encode_line(path, &OutgoingLine::Resumed(resumed))?))?;
        contents.summary.iter().try_for_each(|summary| put(encode_line(path, &OutgoingLine::Summary(summary))?))?;
        file.flush().map_err(|cause| SinkError::write(path, cause))
    })
}

/// Reads the first line of the journal in `dir`.
pub fn read_header(dir: &Path) -> Result<Header, SinkError> {
    let (file, path) = open(dir)?;
    read_header_line(&mut LineBlocks::starting_small(&file, &path))
}

/// Opens the journal of a directory, or a journal file.
fn open(dir: &Path) -> Result<(File, PathBuf), SinkError> {
    let path = if dir.is_file() { dir.to_owned() } else { dir.join(JOURNAL_FILE) };
    match File::open(&path) {
        Ok(file) => Ok((file, path)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Err(SinkError::JournalMissing { path, cause }),
        Err(cause) => Err(SinkError::Read { path, cause }),
    }
}

/// Creates the directory and a temporary file in it, so that a run fails before it has measured anything.
pub fn check_writable(dir: &Path) -> Result<(), SinkError> {
    let probe = || {
        fs::create_dir_all(dir)?;
        atomic::temporary_in(dir)?.write_all(b"probe\n")
    };
    probe().map_err(|cause| SinkError::NotWritable { dir: dir.to_owned(), cause })
}

/// Journal with the positions of its lines.
struct ReadJournal<R> {
    contents: JournalContents<R>,
    /// Length up to the last complete line.
    length: u64,
    /// Index of each case in the records, and its last line.
    positions: HashMap<CaseId, (usize, LineSpan)>,
}

impl<R> ReadJournal<R> {
    /// Returns the contents, their length, and the last line of each case.
    fn into_parts(self) -> (JournalContents<R>, u64, HashMap<CaseId, LineSpan>) {
        (self.contents, self.length, self.positions.into_iter().map(|(case, (_, line))| (case, line)).collect())
    }
}

/// Reads a whole journal; `keep` converts a record line to the case id and the part to return.
fn read_from<L: DeserializeOwned, R: Send>(
    file: &File,
    path: &Path,
    keep: impl Fn(L) -> (CaseId, R) + Sync,
) -> Result<ReadJournal<R>, SinkError> {
    let mut blocks = LineBlocks::new(file, path);
    let (mut header, mut found) =
        (None, LaterLines { records: Vec::new(), positions: HashMap::new(), resumed: Vec::new(), summary: None });
    loop {
        let lines = blocks.next()?;
        let later = match (&header, lines.split_first()) {
            (_, None) => break,
            (None, Some((first, later))) => {
                header = Some(read_first_line(first.text, first.number, path)?);
                later
            }
            (Some(_), Some(_)) => &lines,
        };
        let read = blocks::map_lines(later, |line| {
            let read = read_later_line(line.text, line.number, path)?.map(&keep);
            Ok((read, LineSpan { start: line.start, bytes: line.text.len() as u64 + 1 }))
        });
        for line in read {
            let (entry, line) = line?;
            found.add(entry, line);
        }
    }
    let header = header.ok_or_else(|| SinkError::NotAJournal { path: path.to_owned() })?;
    let (lines, length, rest) = blocks.totals();
    let incomplete = JournalWarning::IncompleteLastLine { line: lines + 1, bytes: rest };
    let warnings = (rest > 0).then_some(incomplete).into_iter().collect();
    let LaterLines { records, positions: places, resumed, summary } = found;
    Ok(ReadJournal {
        contents: JournalContents { header, records, resumed, summary, warnings },
        length,
        positions: places,
    })
}

/// Content of the lines after the header.
struct LaterLines<R> {
    records: Vec<R>,
    positions: HashMap<CaseId, (usize, LineSpan)>,
    resumed: Vec<Resumed>,
    summary: Option<RunSummary>,
}

impl<R> LaterLines<R> {
    fn add(&mut self, entry: IncomingLine<(CaseId, R)>, line: LineSpan) {
        match entry {
            IncomingLine::Record((case, record)) => match self.positions.entry(case) {
                Entry::Occupied(mut known) => {
                    known.get_mut().1 = line;
                    self.records[known.get().0] = record;
                }
                Entry::Vacant(new) => {
                    new.insert((self.records.len(), line));
                    self.records.push(record);
                }
            },
            IncomingLine::Resumed(resumed) => {
                self.summary = None;
                self.resumed.push(resumed);
            }
            IncomingLine::Summary(summary) => self.summary = Some(summary),
        }
    }
}

fn read_header_line(blocks: &mut LineBlocks<'_>) -> Result<Header, SinkError> {
    let path = blocks.path;
    match blocks.next()?.first() {
        Some(line) => read_first_line(line.text, line.number, path),
        None => Err(SinkError::NotAJournal { path: path.to_owned() }),
    }
}

/// Rejects a line that is too long for readers.
fn check_line_length(line: &[u8], most: u64, path: &Path) -> Result<(), SinkError> {
    if line.len() as u64 <= most {
        return Ok(());
    }
    Err(SinkError::write(path, too_large_error(most, "a line of a journal")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::{Case, Warning};

    #[test]
    fn overlong_lines_are_not_written() {
        let path = Path::new("journal.jsonl");
        let window = calorimeter_case::record::WindowRecord { launches: 1, nanos: 1_000_000, ..Default::default() };
        let mut record = Record::new(Case::default(), Status::Ok);
        record.time.windows = vec![window; 100_000];
        let (whole, shortened) = encode_record(path, &record, MAX_LINE_BYTES).unwrap();
        assert!(shortened.is_none() && whole.len() > 2 << 20);
        let (line, shortened) = encode_record(path, &record, 2 << 20).unwrap();
        let shortened = shortened.unwrap();
        assert_eq!(format::decode_record(&line, path).unwrap(), shortened);
        assert!(shortened.time.windows.is_empty() && check_line_length(&line, 2 << 20, path).is_ok());
        assert_eq!(*shortened.warnings, [Warning::dropped_series(3, 2)]);
        let error = check_line_length(&whole, 2 << 20, path).unwrap_err();
        let SinkError::Write { cause, .. } = &error else { panic!("{error:?}") };
        assert_eq!(cause.kind(), std::io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn full_disk_is_reported() {
        let path = Path::new("/dev/full");
        if !path.exists() {
            return; // macOS has none
        }
        let file = File::options().append(true).open(path).unwrap();
        let mut journal = Journal { path: path.into(), file, length: 0, records: HashMap::new() };
        let error = journal.append(&Record::new(Case::default(), Status::Ok)).unwrap_err();
        assert!(matches!(&error, SinkError::DiskFull { path: full, .. } if full == path), "{error}");
    }
}
