//! Reads the lines of a journal in blocks, so that all cores can parse them.

use crate::SinkError;
use calorimeter_case::too_long;
use std::fs::File;
use std::io::{BufRead, Read};
use std::ops::Range;
use std::path::Path;
use std::thread;

/// Maximum length of a line: a header with configuration files of a few MiB each, or a record with all its windows.
pub(super) const MOST_BYTES: u64 = 256 << 20;

/// Bytes per block; reading a block takes far longer than starting threads for it.
const BLOCK: usize = 8 << 20;

/// Minimum bytes per thread.
const SHARE: usize = 256 << 10;

/// Iterator over the complete lines of a file, in blocks.
pub(super) struct Blocks<'a> {
    file: &'a File,
    pub(super) path: &'a Path,
    block: usize,
    bytes: Vec<u8>,
    /// Bytes of complete lines in the buffer.
    whole: usize,
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

impl<'a> Blocks<'a> {
    pub(super) fn of(file: &'a File, path: &'a Path) -> Self {
        Self { file, path, block: BLOCK, bytes: Vec::new(), whole: 0, lines: 0, start: 0 }
    }

    /// Starts with a small block, for readers of the first line only.
    pub(super) fn starting_small(file: &'a File, path: &'a Path) -> Self {
        Self { block: 64 << 10, ..Self::of(file, path) }
    }

    /// Returns the next lines; empty at the end.
    pub(super) fn next(&mut self) -> Result<Vec<PlacedLine<'_>>, SinkError> {
        self.start += self.whole as u64;
        self.bytes.drain(..self.whole);
        self.whole = 0;
        while self.whole == 0 {
            let known = self.bytes.len();
            let mut some = self.file.take(self.block as u64);
            let read = some.read_to_end(&mut self.bytes).map_err(|cause| self.unreadable(cause))?;
            let end = self.bytes[known..].iter().rposition(|&byte| byte == b'\n');
            self.whole = end.map_or(0, |end| known + end + 1);
            if self.whole == 0 && self.bytes.len() as u64 > MOST_BYTES {
                return Err(self.longer(self.lines + 1));
            }
            if read == 0 {
                break;
            }
        }
        let ends = ends(&self.bytes[..self.whole]);
        let first = self.lines + 1;
        if let Some(long) = ends.iter().position(|line| line.len() as u64 >= MOST_BYTES) {
            return Err(self.longer(first + long));
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
    pub(super) fn end(&self) -> (usize, u64, u64) {
        (self.lines, self.start + self.whole as u64, (self.bytes.len() - self.whole) as u64)
    }

    fn longer(&self, number: usize) -> SinkError {
        self.unreadable(too_long(MOST_BYTES, &format!("line {number} of a journal")))
    }

    fn unreadable(&self, cause: std::io::Error) -> SinkError {
        SinkError::Read { path: self.path.to_owned(), cause }
    }
}

/// Ranges of the lines of a text, without line feeds.
fn ends(text: &[u8]) -> Vec<Range<usize>> {
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
pub(super) fn each<T: Send>(lines: &[PlacedLine<'_>], make: impl Fn(&PlacedLine<'_>) -> T + Sync) -> Vec<T> {
    let bytes: usize = lines.iter().map(|line| line.text.len()).sum();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let shares = cores.min(bytes / SHARE).max(1);
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
        let mut blocks = Blocks { block, ..Blocks::of(&file, Path::new("journal")) };
        let mut found = Vec::new();
        loop {
            let lines = blocks.next().unwrap();
            if lines.is_empty() {
                break;
            }
            let text = |line: &PlacedLine<'_>| String::from_utf8(line.text.to_vec()).unwrap();
            found.extend(lines.iter().map(|line| (line.number, line.start, text(line))));
        }
        (found, blocks.end())
    }

    #[test]
    fn lines_are_the_same_wherever_blocks_end() {
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
    fn what_several_threads_make_stands_in_the_order_of_the_lines() {
        let long = vec![b'x'; SHARE];
        let lines: Vec<PlacedLine> = (0..9).map(|number| PlacedLine { number, start: 0, text: &long }).collect();
        assert_eq!(each(&lines, |line| line.number), (0..9).collect::<Vec<_>>());
    }
}
