//! Content that goes round in a circle: the rows or columns of a matrix, moved on from one buffer to another.

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel},
    nvrtc::Source,
};

/// Lines of bytes, each moved on by so many; the last come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Circle {
    /// How many lines lie behind one another.
    pub lines: usize,
    /// Bytes of each.
    pub bytes: usize,
    /// Bytes by which it is moved on, fewer than it has.
    pub by: usize,
}

const THREADS: usize = 256;
const PIECES: usize = 4;

/// What kernels may take at a time, in bytes, and what CUDA calls it.
const WORDS: [(usize, &str); 5] =
    [(16, "uint4"), (8, "uint2"), (4, "unsigned"), (2, "unsigned short"), (1, "unsigned char")];

impl Circle {
    /// A buffer of so many bytes as it is.
    pub fn still(bytes: usize) -> Self {
        Self { lines: 1, bytes, by: 0 }
    }

    fn kernel(self, machine: &Machine, name: &str, extent: Extent) -> Result<Kernel, NativeError> {
        let Self { lines, bytes, by } = self;
        let (width, word) = self.word();
        let line = bytes / width;
        let blocks = lines * line.div_ceil(THREADS * PIECES);
        let limit = i32::MAX as usize;
        if !(1..=limit).contains(&blocks) {
            return Err(NativeError::InvalidSize { what: "the parts of what is moved on", limit, value: blocks });
        }
        if by >= bytes {
            let what = "bytes by which a line is moved on";
            return Err(NativeError::InvalidSize { what, limit: bytes - 1, value: by });
        }
        let extent = Extent { sizes: (line as u64, (by / width) as u64), ..extent };
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        Kernel::prepare(machine, Source::Circle, name, macros(word), extent, geometry)
    }

    /// The widest word that lines and what they are moved on by are made of.
    fn word(self) -> (usize, &'static str) {
        let fits = |(width, _): &(usize, &str)| self.bytes.is_multiple_of(*width) && self.by.is_multiple_of(*width);
        WORDS.into_iter().find(fits).unwrap_or(WORDS[4])
    }

    fn whole(self) -> usize {
        self.lines * self.bytes
    }
}

impl Machine {
    /// A new buffer with the content of another, moved on.
    pub fn moved_on(&self, x: &Buffer, circle: Circle) -> Result<Buffer, NativeError> {
        let extent = Extent { reads: vec![("x", circle.whole())], writes: vec![("y", circle.whole())], sizes: (0, 0) };
        let kernel = circle.kernel(self, "moved_on", extent)?;
        let mut y = self.allocate(circle.whole())?;
        kernel.enqueue(&x.memory, &mut y.memory)?;
        Ok(y)
    }

    /// Whether a buffer has the bits of another, moved on, after everything enqueued so far; an error of that work is
    /// returned here.
    pub fn is_moved_on(&self, x: &Buffer, y: &Buffer, circle: Circle) -> Result<bool, NativeError> {
        let reads = vec![("x", circle.whole()), ("y", circle.whole())];
        let kernel = circle.kernel(self, "differs", Extent { reads, writes: vec![("found", 4)], sizes: (0, 0) })?;
        let mut found = self.allocate(4)?;
        found.fill(0)?;
        kernel.enqueue_all(&[&x.memory, &y.memory], &mut [&mut found.memory])?;
        Ok(found.download()?.iter().all(|&byte| byte == 0))
    }
}

fn macros(word: &str) -> Vec<String> {
    vec![format!("WORD={word}"), format!("THREADS={THREADS}"), format!("PIECES={PIECES}")]
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_source_compiles_for_words_of_every_width() {
        for (_, word) in WORDS {
            assert_compiles(Source::Circle, &macros(word));
        }
    }

    #[test]
    fn words_are_as_wide_as_lines_and_their_way_allow() {
        let width = |bytes, by| Circle { lines: 3, bytes, by }.word().0;
        assert_eq!(
            [width(64, 32), width(64, 24), width(64, 20), width(64, 2), width(64, 7), width(9, 0)],
            [16, 8, 4, 2, 1, 1]
        );
    }
}
