//! Large copies to the host by way of memory that is locked in place: the GPU fills one piece of it while all threads
//! empty the other. Fresh memory is then mapped by all of them, and not by the one that waits for the driver.

use super::NativeError;
use super::driver::{Memory, failed};
use cudarc::driver::{CudaContext, CudaEvent, result};
use rayon::prelude::*;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

/// Locking takes milliseconds, so that less than this is not worth it.
pub(super) const WORTH: usize = 32 << 20;
/// Where the memory was locked before, less than this is not worth the ways of threads to each other.
const WORTH_AGAIN: usize = 1 << 20;
const PIECE: usize = 8 << 20;
/// What a thread copies at a time.
const SHARE: usize = 256 << 10;

/// What stays locked from one copy to the next.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<Option<Pieces>>);

/// Two pieces of locked memory.
#[derive(Debug)]
struct Pieces {
    first: *mut u8,
    context: Arc<CudaContext>,
}

// SAFETY: nobody else has the memory, and it belongs to no thread.
unsafe impl Send for Pieces {}

impl Pieces {
    fn lock(memory: &Memory) -> Result<Self, NativeError> {
        let context = memory.select()?.clone();
        // SAFETY: a context is current, and the memory is freed on drop alone.
        let first = unsafe { result::malloc_host(2 * PIECE, 0) }.map_err(failed("locking host memory"))?;
        // SAFETY: all of it was allocated; no byte of it is read before one was written.
        unsafe { first.cast::<u8>().write_bytes(0, 2 * PIECE) };
        Ok(Self { first: first.cast(), context })
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
        let _ = self.context.bind_to_thread();
        // SAFETY: it came from the driver, and every copy into it was waited for or its context is lost.
        let _ = unsafe { result::free_host(self.first.cast()) };
    }
}

/// Copies to the host after everything enqueued so far.
pub(super) fn download(memory: &Memory) -> Result<Vec<u8>, NativeError> {
    // Where none can be locked, the plain way is as good and takes longer.
    let Ok(mut locked) = Pieces::lock(memory) else { return memory.download() };
    through::<1, u8>(&mut locked, memory, |&[byte]| byte)
}

/// The same, and makes something of each `WIDTH` bytes. What is locked for it stays so.
pub(super) fn download_each<const WIDTH: usize, T: Default + Clone + Send>(
    kept: &Kept,
    memory: &Memory,
    of: impl Fn(&[u8; WIDTH]) -> T + Sync,
) -> Result<Vec<T>, NativeError> {
    if memory.len() >= WORTH_AGAIN {
        let mut kept = kept.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_none() {
            *kept = Pieces::lock(memory).ok();
        }
        if let Some(locked) = &mut *kept {
            return through(locked, memory, of);
        }
    }
    Ok(memory.download()?.as_chunks().0.iter().map(of).collect())
}

/// By way of locked memory. Pieces and shares are whole groups of `WIDTH` bytes.
fn through<const WIDTH: usize, T: Default + Clone + Send>(
    locked: &mut Pieces,
    memory: &Memory,
    of: impl Fn(&[u8; WIDTH]) -> T + Sync,
) -> Result<Vec<T>, NativeError> {
    memory.select()?;
    let mut made = vec![T::default(); memory.len() / WIDTH];
    let pieces = memory.len().div_ceil(PIECE);
    let begin = |locked: &mut Pieces, number: usize| -> Result<CudaEvent, NativeError> {
        let first = number * PIECE;
        let piece = locked.piece(number, PIECE.min(memory.len() - first));
        // SAFETY: it is locked, its content was copied on before, and nobody looks at it until the event was waited for.
        unsafe { memory.begin_download(piece, first) }
    };
    let mut arrived = begin(locked, 0)?;
    for (number, made) in made.chunks_mut(PIECE / WIDTH).enumerate() {
        let next = (number + 1 < pieces).then(|| begin(locked, number + 1)).transpose();
        // Waited for whatever became of the next: the memory may not be freed while the device writes to it.
        arrived.synchronize().map_err(failed("copying from the device"))?;
        let piece = locked.piece(number, made.len() * WIDTH);
        let shares = made.par_chunks_mut(SHARE / WIDTH).zip(piece.par_chunks(SHARE));
        shares.for_each(|(made, bytes)| {
            made.iter_mut().zip(bytes.as_chunks().0).for_each(|(made, bytes)| *made = of(bytes))
        });
        match next? {
            Some(event) => arrived = event,
            None => break,
        }
    }
    Ok(made)
}
