//! Bytes on the device.

use super::{NativeError, driver::Memory, staged};

/// Untyped device memory, freed on drop. It keeps the GPU's context alive, so it may outlive its [`super::Machine`].
///
/// Made by [`super::Machine::allocate`] or [`super::Machine::upload`]; aligned to at least 256 bytes.
#[derive(Debug)]
pub struct Buffer {
    pub(super) memory: Memory,
}

impl Buffer {
    /// Size in bytes.
    #[allow(clippy::len_without_is_empty, reason = "a buffer holds at least one byte")]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Replaces the content, waiting for the copy. `bytes` must have the buffer's length.
    pub fn upload(&mut self, bytes: &[u8]) -> Result<(), NativeError> {
        self.memory.upload(bytes)
    }

    /// Reads the content back after everything enqueued so far; an error of that work is returned here.
    pub fn download(&self) -> Result<Vec<u8>, NativeError> {
        if self.len() < staged::WORTH { self.memory.download() } else { staged::download(&self.memory) }
    }

    /// Enqueues a copy of another buffer's content by the driver, as long as this buffer is.
    pub fn copy_from(&mut self, from: &Self) -> Result<(), NativeError> {
        self.memory.copy_from(&from.memory)
    }

    /// Enqueues setting every byte. `0xff` poisons an output: it is NaN in every float kind.
    pub fn fill(&mut self, byte: u8) -> Result<(), NativeError> {
        self.memory.fill(byte)
    }
}
