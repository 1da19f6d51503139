//! Device memory.

use super::{
    NativeError,
    driver::{DeviceMemory, IPC_HANDLE_BYTES},
    pinned_staging,
};

/// Untyped device memory, freed on drop. It keeps the context alive, so it may outlive its [`super::CudaDevice`].
///
/// Created by [`super::CudaDevice::allocate`] or [`super::CudaDevice::upload`]; aligned to at least 256 bytes.
#[derive(Debug)]
pub struct DeviceBuffer {
    pub(super) memory: DeviceMemory,
}

impl DeviceBuffer {
    /// Size in bytes.
    #[allow(clippy::len_without_is_empty, reason = "a buffer holds at least one byte")]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Replaces the content and waits for the copy. `bytes` must have the length of the buffer.
    pub fn upload(&mut self, bytes: &[u8]) -> Result<(), NativeError> {
        self.memory.upload(bytes)
    }

    /// Replaces the bytes from `first` on and waits for the copy.
    pub fn upload_at(&mut self, first: usize, bytes: &[u8]) -> Result<(), NativeError> {
        self.memory.upload_at(first, bytes)
    }

    /// Downloads `bytes` bytes from `first` on, after all enqueued work.
    pub fn download_at(&self, first: usize, bytes: usize) -> Result<Vec<u8>, NativeError> {
        self.memory.download_at(first, bytes)
    }

    /// Sets `bytes` bytes from `first` on, and waits.
    pub fn fill_at(&mut self, first: usize, bytes: usize, byte: u8) -> Result<(), NativeError> {
        self.memory.fill_at(first, bytes, byte)?;
        self.memory.synchronize()
    }

    /// Copies `bytes` bytes between two ranges that do not overlap, and waits.
    pub fn copy_within(&mut self, from: usize, to: usize, bytes: usize) -> Result<(), NativeError> {
        self.memory.copy_within(from, to, bytes)?;
        self.memory.synchronize()
    }

    /// Handle by which another process on this machine opens the memory, with `cuIpcOpenMemHandle`. That process must
    /// close the handle before this buffer is dropped.
    pub fn ipc_handle(&self) -> Result<[u8; IPC_HANDLE_BYTES], NativeError> {
        self.memory.ipc_handle()
    }

    /// Downloads the content after all enqueued work and returns the error of that work, if any.
    pub fn download(&self) -> Result<Vec<u8>, NativeError> {
        if self.len() < pinned_staging::MIN_STAGED_BYTES {
            self.memory.download()
        } else {
            pinned_staging::download(&self.memory)
        }
    }

    /// Enqueues a device-to-device copy of `len()` bytes from another buffer.
    pub fn copy_from(&mut self, from: &Self) -> Result<(), NativeError> {
        self.memory.copy_from(&from.memory)
    }

    /// Enqueues setting every byte. `0xff` poisons an output: it is NaN in every float dtype.
    pub fn fill(&mut self, byte: u8) -> Result<(), NativeError> {
        self.memory.fill(byte)
    }
}
