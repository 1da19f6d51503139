//! Reads the lines of a journal in blocks, so that all cores can parse them.

use crate::SinkError;
use calorimeter_case::too_large_error;
use std::fs::File;
use std::io::{BufRead, Read};
use std::ops::Range;
use std::path::Path;
use std::thread;

/// Maximum length of a line: a header with configuration files of a few MiB each, or a record with all its windows.
pub(super) const MAX_LINE_BYTES: u64 = 256 << 20;

/// Bytes per block; reading a block takes far longer than starting threads for it.
const BLOCK_BYTES: usize = 8 << 20;

/// Minimum bytes per thread.
const MIN_BYTES_PER_THREAD: usize = 256 << 10;

/// Iterator over the complete lines of a file, in blocks.
pub(super) struct LineBlocks<'a> {
    file: &'a File,
    pub(super) path: &'a Path,
    block: usize,
    bytes: Vec<u8>,
    /// Bytes of complete lines in the buffer.
    complete_bytes: usize,
    /// Number of lines before this block, and their length.
    lines: usize,
    start: u64,
}

/// Line without line feed, with its position in the file.
pub(super) struct PlacedLine<'a> {
    /// Line number, starting at 1.
    pub(super) number: usize,
    pub(super) start: u64,
    pub(super) text: &'a [u8],
}

impl<'a> LineBlocks<'a> {
    pub(super) fn new(file: &'a File, path: &'a Path) -> Self {
        Self { file, path, block: BLOCK_BYTES, bytes: Vec::new(), complete_bytes: 0, lines: 0, start: 0 }
    }

    /// Starts with a small block, for readers of the first line only.
    pub(super) fn starting_small(file: &'a File, path: &'a Path) -> Self {
        Self { block: 64 << 10, ..Self::new(file, path) }
    }

    /// Returns the next lines; empty at the end.
    pub(super) fn next(&mut self) -> Result<Vec<PlacedLine<'_>>, SinkError> {
        self.start += self.complete_bytes as u64;
        self.bytes.drain(..self.complete_bytes);
        self.complete_bytes = 0;
        while self.complete_bytes == 0 {
            let known = self.bytes.len();
            let mut some = self.file.take(self.block as u64);
            let read = some.read_to_end(&mut self.bytes).map_err(|cause| self.read_error(cause))?;
            let end = self.bytes[known..].iter().rposition(|&byte| byte == b'\n');
            self.complete_bytes = end.map_or(0, |end| known + end + 1);
            if self.complete_bytes == 0 && self.bytes.len() as u64 > MAX_LINE_BYTES {
                return Err(self.line_too_long(self.lines + 1));
            }
            if read == 0 {
                break;
            }
        }
        let ends = line_ranges(&self.bytes[..self.complete_bytes]);
        let first = self.lines + 1;
        if let Some(long) = ends.iter().position(|line| line.len() as u64 >= MAX_LINE_BYTES) {
            return Err(self.line_too_long(first + long));
        }
        self.lines += ends.len();
        let placed = ends.into_iter().enumerate().map(|(index, line)| PlacedLine {
            number: first + index,
            start: self.start + line.start as u64,
            text: &self.bytes[line],
        });
        Ok(placed.collect())
    }

    /// At the end: number of lines, their length, and the length of the incomplete rest.
    pub(super) fn totals(&self) -> (usize, u64, u64) {
        (self.lines, self.start + self.complete_bytes as u64, (self.bytes.len() - self.complete_bytes) as u64)
    }

    fn line_too_long(&self, number: usize) -> SinkError {
        self.read_error(too_large_error(MAX_LINE_BYTES, &format!("line {number} of a journal")))
    }

    fn read_error(&self, cause: std::io::Error) -> SinkError {
        SinkError::Read { path: self.path.to_owned(), cause }
    }
}

/// Ranges of the lines of a text, without line feeds.
fn line_ranges(text: &[u8]) -> Vec<Range<usize>> {
    let (mut lines, mut rest, mut start) = (Vec::new(), text, 0);
    // Reading from a slice cannot fail.
    while let Ok(length @ 1..) = rest.skip_until(b'\n') {
        lines.push(start..start + length - 1);
        start += length;
    }
    lines
}

/// Maps lines in order, using several threads if there is enough text. Lines of threads that cannot be started are
/// mapped on this one.
pub(super) fn map_lines<T: Send>(lines: &[PlacedLine<'_>], make: impl Fn(&PlacedLine<'_>) -> T + Sync) -> Vec<T> {
    let bytes: usize = lines.iter().map(|line| line.text.len()).sum();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let shares = cores.min(bytes / MIN_BYTES_PER_THREAD).max(1);
    let own = |lines: &[PlacedLine<'_>]| lines.iter().map(&make).collect::<Vec<T>>();
    if shares == 1 {
        return own(lines);
    }
    thread::scope(|scope| {
        let mut parts = lines.chunks(lines.len().div_ceil(shares));
        let mine = parts.next().unwrap_or_default();
        let others: Vec<_> =
            parts.map(|part| (part, thread::Builder::new().spawn_scoped(scope, move || own(part)))).collect();
        let mut made = own(mine);
        for (part, other) in others {
            made.extend(match other {
                Ok(other) => other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(_) => own(part),
            });
        }
        made
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Number, start and text of a line.
    type Read = (usize, u64, String);

    fn read(text: &[u8], block: usize) -> (Vec<Read>, (usize, u64, u64)) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        let mut blocks = LineBlocks { block, ..LineBlocks::new(&file, Path::new("journal")) };
        let mut found = Vec::new();
        loop {
            let lines = blocks.next().unwrap();
            if lines.is_empty() {
                break;
            }
            let text = |line: &PlacedLine<'_>| String::from_utf8(line.text.to_vec()).unwrap();
            found.extend(lines.iter().map(|line| (line.number, line.start, text(line))));
        }
        (found, blocks.totals())
    }

    #[test]
    fn lines_are_independent_of_block_size() {
        let text = b"one\n\nthree is longer\nfour\nno end";
        for block in 1..40 {
            let (lines, end) = read(text, block);
            let expected = [(1, 0, "one"), (2, 4, ""), (3, 5, "three is longer"), (4, 21, "four")];
            assert_eq!(lines, expected.map(|(number, start, text)| (number, start, text.to_owned())), "{block}");
            assert_eq!(end, (4, 26, 6), "{block}");
        }
        assert_eq!(read(b"", 8), (vec![], (0, 0, 0)));
    }

    #[test]
    fn threads_preserve_line_order() {
        let long = vec![b'x'; MIN_BYTES_PER_THREAD];
        let lines: Vec<PlacedLine> = (0..9).map(|number| PlacedLine { number, start: 0, text: &long }).collect();
        assert_eq!(map_lines(&lines, |line| line.number), (0..9).collect::<Vec<_>>());
    }
}
