//! Memory of the host that a foreign call is given.

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

/// Bytes that begin on a line of the cache, as vector instructions like it.
pub struct Memory {
    lines: Vec<Line>,
    bytes: usize,
}

impl Memory {
    /// So many bytes of one value.
    pub fn filled(bytes: usize, byte: u8) -> Self {
        Self { lines: vec![Line([byte; 64]); bytes.div_ceil(64)], bytes }
    }

    /// These bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut memory = Self::filled(bytes.len(), 0);
        memory.write(bytes);
        memory
    }

    /// Replaces its content by as many bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        for (line, bytes) in self.lines.iter_mut().zip(bytes.chunks(64)) {
            line.0[..bytes.len()].copy_from_slice(bytes);
        }
    }

    /// Sets every byte.
    pub fn fill(&mut self, byte: u8) {
        self.lines.fill(Line([byte; 64]));
    }

    /// Its content.
    pub fn read(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.lines.iter().flat_map(|line| line.0).collect();
        bytes.truncate(self.bytes);
        bytes
    }

    /// Where it begins.
    pub fn start(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_keeps_its_length() {
        let mut memory = Memory::of(&[7; 100]);
        assert_eq!(memory.start() as usize % 64, 0);
        assert_eq!(memory.read(), [7; 100]);
        memory.fill(0xFF);
        memory.write(&[1; 100]);
        assert_eq!(memory.read(), [1; 100]);
    }
}
