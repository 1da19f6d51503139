//! `journal.jsonl`: everything that a run found out, on disk before the next case starts.
//!
//! The first line is the [`Header`]; then comes one line per finished case, `{"record": {…}}`; a run that was continued has
//! `{"resumed": {…}}` where that happened; the last line is `{"summary": {…}}`, so that a run cut short can be told from a
//! finished one. Readers ignore fields that they do not know. Where a case has several records, the last one counts, and so
//! it is with summaries.
//!
//! A killed writer can leave an incomplete last line. It costs that one record: [`read`] passes over it and
//! [`Journal::resume`] cuts it off, both with a [`JournalWarning`]. Anything else that is wrong is an error that names the
//! line, because a reader that skips over damage hides it.

mod follow;
pub(crate) mod format;

pub use follow::{Followed, Follower};
pub use format::{Header, Resumed, Summary};

use crate::lock::{is_at, lock};
use crate::stored::{Line, Stored};
use crate::{SinkError, atomic, left_over};
use calorimeter_case::record::{Record, Status};
use calorimeter_case::{CaseId, too_long};
use format::{LineIn, LineOut, first_line, later_line, line_of, read_first_line, read_later_line};
use rustix::fs::OFlags;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the journal in the folder of its run.
pub const JOURNAL_FILE: &str = "journal.jsonl";

/// How long a lock is waited for that somebody may hold who is about to let it go.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many records have which status; one that none has is not listed.
pub fn count_by_status(records: &[Record]) -> BTreeMap<Status, u64> {
    let mut counts = BTreeMap::new();
    for record in records {
        *counts.entry(record.outcome.status).or_default() += 1;
    }
    counts
}

/// All that a journal holds.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalContents {
    /// The first line.
    pub header: Header,
    /// The last record of each case, in the order in which the cases first ended.
    pub records: Vec<Record>,
    /// When the run was taken up again.
    pub resumed: Vec<Resumed>,
    /// The last summary, if the run came to an end after the last resume.
    pub summary: Option<Summary>,
    /// What was passed over.
    pub warnings: Vec<JournalWarning>,
}

/// Something in a journal that was passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JournalWarning {
    /// The last line has no end, as a killed writer leaves it.
    IncompleteLastLine {
        /// The line, counted from 1.
        line: usize,
        /// Its length.
        bytes: u64,
    },
}

impl fmt::Display for JournalWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalWarning::IncompleteLastLine { line, bytes } => {
                write!(
                    f,
                    "the journal's last line ({line}, {bytes} bytes) is incomplete and was left out; its case has to run again"
                )
            }
        }
    }
}

/// The open journal of a running run. As long as it lives, no other process can write it.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// The length up to the last complete line.
    length: u64,
    /// The last record of each case.
    records: HashMap<CaseId, Line>,
}

impl Journal {
    /// Starts the journal of a new run in `dir`. A journal that is there already is never touched.
    pub fn create(dir: &Path, header: &Header) -> Result<Journal, SinkError> {
        check_writable(dir)?;
        let path = dir.join(JOURNAL_FILE);
        let line = first_line(&path, header)?;
        refuse_longer(&line, MOST_BYTES, &path)?;
        // The file gets its name only with its header in it and its lock on it, so nobody ever meets half a journal.
        let mut temporary = atomic::temporary_in(dir).map_err(|cause| SinkError::write(&path, cause))?;
        lock(temporary.as_file(), &path, PATIENCE)?;
        temporary.write_all(&line).map_err(|cause| SinkError::write(&path, cause))?;
        temporary.as_file().sync_all().map_err(|cause| SinkError::write(&path, cause))?;
        let file = temporary.persist_noclobber(&path).map_err(|failed| match failed.error.kind() {
            io::ErrorKind::AlreadyExists => SinkError::JournalExists { path: path.clone() },
            _ => SinkError::write(&path, failed.error),
        })?;
        atomic::sync_folder(dir);
        Ok(Journal { path, file, length: line.len() as u64, records: HashMap::new() })
    }

    /// Takes the run in `dir` up again and notes so in its journal. The configuration must have the fingerprint of then. The
    /// series of its records stay on disk: [`finish`](Self::finish) answers where.
    pub fn resume(dir: &Path, fingerprint: &str, resumed: &Resumed) -> Result<(Journal, JournalContents), SinkError> {
        let path = dir.join(JOURNAL_FILE);
        let mut options = File::options();
        // A folder may come from somebody else: it does not lead to another file.
        options.read(true).append(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let file = options.open(&path).map_err(|cause| match cause.kind() {
            io::ErrorKind::NotFound => SinkError::JournalMissing { path: path.clone(), cause },
            _ => SinkError::Write { path: path.clone(), cause },
        })?;
        lock(&file, &path, PATIENCE)?;
        let ReadJournal { mut contents, length, records } =
            read_from(&file, &path, |record| drop(record.take_series()))?;
        let found = &contents.header.config_fingerprint;
        if found != fingerprint {
            return Err(SinkError::OtherConfig { path, found: found.clone(), given: fingerprint.into() });
        }
        left_over::clear_run(dir);
        file.set_len(length).map_err(|cause| SinkError::write(&path, cause))?;
        let mut journal = Journal { path, file, length, records };
        journal.append_line(&LineOut::Resumed(resumed))?;
        contents.resumed.push(resumed.clone());
        contents.summary = None;
        Ok((journal, contents))
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds the record of a finished case; when this returns, the system has it where it will be looked for. Answers the
    /// record as it is there if its series were too many for a line: it is without them, and says so.
    pub fn append(&mut self, record: &Record) -> Result<Option<Record>, SinkError> {
        let (line, shortened) = line_of(&self.path, record, MOST_BYTES)?;
        let line = self.write_line(&line)?;
        self.records.insert(record.case.id.clone(), line);
        Ok(shortened)
    }

    /// Adds the summary, makes sure that all of it is on the disk, and lets the lock go. Answers where the records lie.
    pub fn finish(mut self, summary: &Summary) -> Result<Stored, SinkError> {
        self.append_line(&LineOut::Summary(summary))?;
        self.file.sync_all().map_err(|cause| SinkError::write(&self.path, cause))?;
        // Of workers that were killed on the way.
        self.path.parent().into_iter().for_each(left_over::clear_run);
        // Where there are no locks, none is let go.
        let _ = self.file.unlock();
        Ok(Stored::new(self.path, self.file, self.records))
    }

    fn append_line(&mut self, line: &LineOut<'_>) -> Result<Line, SinkError> {
        self.write_line(&later_line(&self.path, line)?)
    }

    fn write_line(&mut self, bytes: &[u8]) -> Result<Line, SinkError> {
        refuse_longer(bytes, MOST_BYTES, &self.path)?;
        match self.file.write_all(bytes) {
            Ok(()) => {
                let line = Line { start: self.length, bytes: bytes.len() as u64 };
                self.length += line.bytes;
                if is_at(&self.file, &self.path) {
                    Ok(line)
                } else {
                    Err(SinkError::JournalLost { path: self.path.clone() })
                }
            }
            Err(cause) => {
                // Part of the line may be there, and the next record must not be glued to it.
                let _ = self.file.set_len(self.length);
                Err(SinkError::write(&self.path, cause))
            }
        }
    }
}

/// Reads the journal in `dir`, or a journal by its own name, finished or not, even while it is being written.
pub fn read(dir: &Path) -> Result<JournalContents, SinkError> {
    let (file, path) = open(dir)?;
    Ok(read_from(&file, &path, |_| {})?.contents)
}

/// The same, where `trim` takes from each record what its reader has no use for, as soon as it is read.
pub fn read_trimmed(dir: &Path, trim: impl Fn(&mut Record)) -> Result<JournalContents, SinkError> {
    let (file, path) = open(dir)?;
    Ok(read_from(&file, &path, trim)?.contents)
}

/// The same without any series: they stay on disk, and the second answer says where.
pub fn read_stored(dir: &Path) -> Result<(JournalContents, Stored), SinkError> {
    let (file, path) = open(dir)?;
    let ReadJournal { contents, records, .. } = read_from(&file, &path, |record| drop(record.take_series()))?;
    Ok((contents, Stored::new(path, file, records)))
}

/// Puts a copy of what was read at `path`, a journal like any other, in place of what is there.
pub fn write_copy(contents: &JournalContents, path: &Path) -> Result<(), SinkError> {
    atomic::write_with(path, |file| {
        let mut file = BufWriter::new(file);
        let mut put = |line: Vec<u8>| file.write_all(&line).map_err(|cause| SinkError::write(path, cause));
        put(first_line(path, &contents.header)?)?;
        contents.records.iter().try_for_each(|record| put(later_line(path, &LineOut::Record(record))?))?;
        contents.resumed.iter().try_for_each(|resumed| put(later_line(path, &LineOut::Resumed(resumed))?))?;
        contents.summary.iter().try_for_each(|summary| put(later_line(path, &LineOut::Summary(summary))?))?;
        file.flush().map_err(|cause| SinkError::write(path, cause))
    })
}

/// Reads the first line of the journal in `dir`.
pub fn read_header(dir: &Path) -> Result<Header, SinkError> {
    let (file, path) = open(dir)?;
    header_of(&mut CompleteLines::of(&file, &path))
}

/// The journal of a run's folder, or the file that is named itself.
fn open(dir: &Path) -> Result<(File, PathBuf), SinkError> {
    let path = if dir.is_file() { dir.to_owned() } else { dir.join(JOURNAL_FILE) };
    match File::open(&path) {
        Ok(file) => Ok((file, path)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Err(SinkError::JournalMissing { path, cause }),
        Err(cause) => Err(SinkError::Read { path, cause }),
    }
}

/// Makes the folder and tries a file in it, so that a run fails before it has measured anything.
pub fn check_writable(dir: &Path) -> Result<(), SinkError> {
    let probe = || {
        fs::create_dir_all(dir)?;
        atomic::temporary_in(dir)?.write_all(b"probe\n")
    };
    probe().map_err(|cause| SinkError::NotWritable { dir: dir.to_owned(), cause })
}

/// What was read of a journal.
struct ReadJournal {
    contents: JournalContents,
    /// The length up to the last complete line.
    length: u64,
    /// The last record of each case.
    records: HashMap<CaseId, Line>,
}

fn read_from(file: &File, path: &Path, trim: impl Fn(&mut Record)) -> Result<ReadJournal, SinkError> {
    let mut lines = CompleteLines::of(file, path);
    let header = header_of(&mut lines)?;
    let mut contents =
        JournalContents { header, records: Vec::new(), resumed: Vec::new(), summary: None, warnings: Vec::new() };
    let (mut place_of, mut found): (HashMap<CaseId, usize>, HashMap<CaseId, Line>) = Default::default();
    loop {
        let start = lines.length;
        let Some((number, line)) = lines.next()? else { break };
        let bytes = line.len() as u64 + 1;
        match read_later_line(line, number, path)? {
            LineIn::Record(mut record) => {
                trim(&mut record);
                found.insert(record.case.id.clone(), Line { start, bytes });
                match place_of.get(&record.case.id) {
                    Some(&place) => contents.records[place] = *record,
                    None => {
                        place_of.insert(record.case.id.clone(), contents.records.len());
                        contents.records.push(*record);
                    }
                }
            }
            LineIn::Resumed(resumed) => {
                contents.summary = None;
                contents.resumed.push(resumed);
            }
            LineIn::Summary(summary) => contents.summary = Some(summary),
        }
    }
    if lines.rest > 0 {
        contents.warnings.push(JournalWarning::IncompleteLastLine { line: lines.number + 1, bytes: lines.rest });
    }
    Ok(ReadJournal { contents, length: lines.length, records: found })
}

fn header_of(lines: &mut CompleteLines<'_>) -> Result<Header, SinkError> {
    let path = lines.path;
    match lines.next()? {
        Some((number, line)) => read_first_line(line, number, path),
        None => Err(SinkError::NotAJournal { path: path.to_owned() }),
    }
}

/// The longest line: a header with the files of a run, each of a few MiB, or a record with all its windows.
const MOST_BYTES: u64 = 256 << 20;

/// A line that no reader would take is not written.
fn refuse_longer(line: &[u8], most: u64, path: &Path) -> Result<(), SinkError> {
    if line.len() as u64 <= most {
        return Ok(());
    }
    Err(SinkError::write(path, too_long(most, "a line of a journal")))
}

/// Lines that end in a line feed, one at a time: a journal with all its windows may be large.
struct CompleteLines<'a> {
    reader: BufReader<&'a File>,
    path: &'a Path,
    /// How many there were so far, and their length together.
    number: usize,
    length: u64,
    /// The length of what follows the last line feed, known at the end.
    rest: u64,
    line: Vec<u8>,
}

impl<'a> CompleteLines<'a> {
    fn of(file: &'a File, path: &'a Path) -> Self {
        Self { reader: BufReader::new(file), path, number: 0, length: 0, rest: 0, line: Vec::new() }
    }

    fn next(&mut self) -> Result<Option<(usize, &[u8])>, SinkError> {
        self.line.clear();
        let unreadable = |cause| SinkError::Read { path: self.path.to_owned(), cause };
        let bytes =
            (&mut self.reader).take(MOST_BYTES + 1).read_until(b'\n', &mut self.line).map_err(unreadable)? as u64;
        if bytes > MOST_BYTES {
            let line = format!("the line {} of a journal", self.number + 1);
            return Err(unreadable(too_long(MOST_BYTES, &line)));
        }
        if self.line.pop_if(|last| *last == b'\n').is_none() {
            self.rest = bytes;
            return Ok(None);
        }
        self.number += 1;
        self.length += bytes;
        Ok(Some((self.number, &self.line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::Case;

    #[test]
    fn a_line_that_would_be_refused_is_not_written() {
        let path = Path::new("journal.jsonl");
        let window = calorimeter_case::record::Window { launches: 1, nanos: 1_000_000, ..Default::default() };
        let mut record = Record::new(Case::default(), Status::Ok);
        record.time.windows = vec![window; 100_000];
        let (whole, shortened) = line_of(path, &record, MOST_BYTES).unwrap();
        assert!(shortened.is_none() && whole.len() > 2 << 20);
        let (line, shortened) = line_of(path, &record, 2 << 20).unwrap();
        let shortened = shortened.unwrap();
        assert_eq!(format::record_of_line(&line, path).unwrap(), shortened);
        assert!(shortened.time.windows.is_empty() && refuse_longer(&line, 2 << 20, path).is_ok());
        let warning = "its windows and samples are not kept: its line of the journal had 3 MiB, more than 2";
        assert_eq!(shortened.outcome.warnings, [warning]);
        let error = refuse_longer(&whole, 2 << 20, path).unwrap_err().with_causes();
        assert!(error.contains("it is longer than 2 MiB"), "{error}");
    }

    #[test]
    fn a_full_disk_is_named() {
        let path = Path::new("/dev/full");
        if !path.exists() {
            return; // macOS has none
        }
        let file = File::options().append(true).open(path).unwrap();
        let mut journal = Journal { path: path.into(), file, length: 0, records: HashMap::new() };
        let error = journal.append(&Record::new(Case::default(), Status::Ok)).unwrap_err();
        assert!(matches!(error, SinkError::DiskFull { .. }), "{error}");
        assert_eq!(error.to_string(), "cannot write /dev/full: the disk or the quota is full");
    }
}
