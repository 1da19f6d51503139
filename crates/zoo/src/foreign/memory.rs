//! Host memory for foreign calls.

#[repr(align(64))]
#[derive(Clone, Copy)]
struct CacheLine([u8; 64]);

/// Bytes aligned to cache lines, for vector instructions.
pub(super) struct AlignedBytes {
    lines: Vec<CacheLine>,
    bytes: usize,
}

impl AlignedBytes {
    /// Allocates `bytes` bytes of one value.
    pub(super) fn new(bytes: usize, byte: u8) -> Self {
        Self { lines: vec![CacheLine([byte; 64]); bytes.div_ceil(64)], bytes }
    }

    /// Copies a slice.
    pub(super) fn copy_of(bytes: &[u8]) -> Self {
        let mut memory = Self::new(bytes.len(), 0);
        memory.write(bytes);
        memory
    }

    /// Overwrites the content by a slice of equal length.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        for (line, bytes) in self.lines.iter_mut().zip(bytes.chunks(64)) {
            line.0[..bytes.len()].copy_from_slice(bytes);
        }
    }

    /// Sets every byte.
    pub(super) fn fill(&mut self, byte: u8) {
        self.lines.fill(CacheLine([byte; 64]));
    }

    /// Returns the content.
    pub(super) fn read(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.lines.iter().flat_map(|line| line.0).collect();
        bytes.truncate(self.bytes);
        bytes
    }

    /// Pointer to the first byte.
    pub(super) fn start(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_keeps_its_length() {
        let mut memory = AlignedBytes::copy_of(&[7; 100]);
        assert_eq!(memory.start() as usize % 64, 0);
        assert_eq!(memory.read(), [7; 100]);
        memory.fill(0xFF);
        memory.write(&[1; 100]);
        assert_eq!(memory.read(), [1; 100]);
    }
}
