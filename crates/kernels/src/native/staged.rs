//! Large copies to the host by way of memory that is locked in place: the GPU fills one piece of it while all threads
//! empty the other. Fresh memory is then mapped by all of them, and not by the one that waits for the driver.

use super::NativeError;
use super::driver::{Memory, failed};
use cudarc::driver::{CudaEvent, result};
use rayon::prelude::*;
use std::slice;

/// Locking takes milliseconds, so that less than this is not worth it.
pub(super) const WORTH: usize = 32 << 20;
const PIECE: usize = 8 << 20;
/// What a thread copies at a time.
const SHARE: usize = 256 << 10;

/// Two pieces of locked memory.
struct Pieces {
    first: *mut u8,
}

impl Pieces {
    /// A context must be current.
    fn lock() -> Result<Self, NativeError> {
        // SAFETY: a context is current, and the memory is freed on drop alone.
        let first = unsafe { result::malloc_host(2 * PIECE, 0) }.map_err(failed("locking host memory"))?;
        // SAFETY: all of it was allocated; no byte of it is read before one was written.
        unsafe { first.cast::<u8>().write_bytes(0, 2 * PIECE) };
        Ok(Self { first: first.cast() })
    }

    /// The first bytes of one of the two.
    fn piece(&mut self, number: usize, bytes: usize) -> &mut [u8] {
        assert!(bytes <= PIECE);
        // SAFETY: the range lies in the allocation, was written once, and is borrowed through `self` alone.
        unsafe { slice::from_raw_parts_mut(self.first.add(number % 2 * PIECE), bytes) }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        // SAFETY: it came from the driver, and every copy into it was waited for or its context is lost.
        let _ = unsafe { result::free_host(self.first.cast()) };
    }
}

/// Copies to the host after everything enqueued so far.
pub(super) fn download(memory: &Memory) -> Result<Vec<u8>, NativeError> {
    memory.select()?;
    // Where none can be locked, the plain way is as good and takes longer.
    let Ok(mut locked) = Pieces::lock() else { return memory.download() };
    let mut into = vec![0; memory.len()];
    let pieces = into.len().div_ceil(PIECE);
    let begin = |locked: &mut Pieces, number: usize| -> Result<CudaEvent, NativeError> {
        let first = number * PIECE;
        let piece = locked.piece(number, PIECE.min(memory.len() - first));
        // SAFETY: it is locked, its content was copied on before, and nobody looks at it until the event was waited for.
        unsafe { memory.begin_download(piece, first) }
    };
    let mut arrived = begin(&mut locked, 0)?;
    for (number, into) in into.chunks_mut(PIECE).enumerate() {
        let next = (number + 1 < pieces).then(|| begin(&mut locked, number + 1)).transpose();
        // Waited for whatever became of the next: the memory may not be freed while the device writes to it.
        arrived.synchronize().map_err(failed("copying from the device"))?;
        let piece = locked.piece(number, into.len());
        into.par_chunks_mut(SHARE).zip(piece.par_chunks(SHARE)).for_each(|(into, piece)| into.copy_from_slice(piece));
        match next? {
            Some(event) => arrived = event,
            None => break,
        }
    }
    Ok(into)
}
