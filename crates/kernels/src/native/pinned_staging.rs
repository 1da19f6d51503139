//! Large downloads through pinned memory with double buffering: the GPU fills one chunk while all threads copy the
//! other. All threads then share the page faults of the destination, which otherwise slow the single thread that waits
//! for the driver.

use super::NativeError;
use super::driver::{DeviceMemory, driver_error};
use cudarc::driver::{CudaContext, CudaEvent, result};
use rayon::prelude::*;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

/// Minimum size of a staged download; pinning memory takes milliseconds.
pub(super) const MIN_STAGED_BYTES: usize = 32 << 20;
/// Minimum size with memory that is already pinned; below it, waking the threads costs more than it saves.
const MIN_MAPPED_BYTES: usize = 1 << 20;
const CHUNK_BYTES: usize = 8 << 20;
/// Bytes per task of a thread.
const THREAD_BYTES: usize = 256 << 10;

/// Pinned memory that is reused by later downloads.
#[derive(Debug, Default)]
pub(super) struct PinnedStaging(Mutex<Option<PinnedBuffers>>);

/// Two chunks of pinned memory.
#[derive(Debug)]
struct PinnedBuffers {
    first: *mut u8,
    context: Arc<CudaContext>,
}

// SAFETY: this value owns the memory exclusively, and the memory is not tied to a thread.
unsafe impl Send for PinnedBuffers {}

impl PinnedBuffers {
    fn allocate(memory: &DeviceMemory) -> Result<Self, NativeError> {
        let context = memory.make_current()?.clone();
        // SAFETY: a context is current, and the memory is freed only on drop.
        let first = unsafe { result::malloc_host(2 * CHUNK_BYTES, 0) }.map_err(driver_error("pinning host memory"))?;
        // SAFETY: the whole range was allocated; no byte is read before it is written.
        unsafe { first.cast::<u8>().write_bytes(0, 2 * CHUNK_BYTES) };
        Ok(Self { first: first.cast(), context })
    }

    /// First bytes of one of the two chunks.
    fn chunk(&mut self, number: usize, bytes: usize) -> &mut [u8] {
        assert!(bytes <= CHUNK_BYTES);
        // SAFETY: the range lies in the allocation, was initialized, and is borrowed only through `self`.
        unsafe { slice::from_raw_parts_mut(self.first.add(number % 2 * CHUNK_BYTES), bytes) }
    }
}

impl Drop for PinnedBuffers {
    fn drop(&mut self) {
        let _ = self.context.bind_to_thread();
        // SAFETY: allocated by the driver; every copy into it has completed, or its context is lost.
        let _ = unsafe { result::free_host(self.first.cast()) };
    }
}

/// Downloads after all enqueued work.
pub(super) fn download(memory: &DeviceMemory) -> Result<Vec<u8>, NativeError> {
    // Without pinned memory the plain download is equivalent but slower.
    let Ok(mut pinned) = PinnedBuffers::allocate(memory) else { return memory.download() };
    download_chunks::<1, u8>(&mut pinned, memory, |&[byte]| byte)
}

/// Downloads and maps each `WIDTH` bytes to a value. The pinned memory is reused by later calls.
pub(super) fn download_mapped<const WIDTH: usize, T: Default + Clone + Send>(
    staging: &PinnedStaging,
    memory: &DeviceMemory,
    convert: impl Fn(&[u8; WIDTH]) -> T + Sync,
) -> Result<Vec<T>, NativeError> {
    if memory.len() >= MIN_MAPPED_BYTES {
        let mut staging = staging.0.lock().unwrap_or_else(PoisonError::into_inner);
        if staging.is_none() {
            *staging = PinnedBuffers::allocate(memory).ok();
        }
        if let Some(pinned) = &mut *staging {
            return download_chunks(pinned, memory, convert);
        }
    }
    Ok(memory.download()?.as_chunks().0.iter().map(convert).collect())
}

/// Downloads through pinned memory. Chunks and tasks are multiples of `WIDTH` bytes.
fn download_chunks<const WIDTH: usize, T: Default + Clone + Send>(
    pinned: &mut PinnedBuffers,
    memory: &DeviceMemory,
    convert: impl Fn(&[u8; WIDTH]) -> T + Sync,
) -> Result<Vec<T>, NativeError> {
    memory.make_current()?;
    let mut values = vec![T::default(); memory.len() / WIDTH];
    let pieces = memory.len().div_ceil(CHUNK_BYTES);
    let start_copy = |pinned: &mut PinnedBuffers, number: usize| -> Result<CudaEvent, NativeError> {
        let first = number * CHUNK_BYTES;
        let piece = pinned.chunk(number, CHUNK_BYTES.min(memory.len() - first));
        // SAFETY: the chunk is pinned, its previous content was copied out, and it is not accessed before the event is
        // reached.
        unsafe { memory.enqueue_download(piece, first) }
    };
    let mut arrived = start_copy(pinned, 0)?;
    for (number, values) in values.chunks_mut(CHUNK_BYTES / WIDTH).enumerate() {
        let next = (number + 1 < pieces).then(|| start_copy(pinned, number + 1)).transpose();
        // Wait even if enqueuing the next copy failed: the memory must not be freed while the device writes to it.
        arrived.synchronize().map_err(driver_error("copying from the device"))?;
        let piece = pinned.chunk(number, values.len() * WIDTH);
        let tasks = values.par_chunks_mut(THREAD_BYTES / WIDTH).zip(piece.par_chunks(THREAD_BYTES));
        tasks.for_each(|(values, bytes)| {
            values.iter_mut().zip(bytes.as_chunks().0).for_each(|(values, bytes)| *values = convert(bytes))
        });
        match next? {
            Some(event) => arrived = event,
            None => break,
        }
    }
    Ok(values)
}
