//! Blocker of a stream: the device waits until the host has enqueued a whole window, which then runs without gaps.

use crate::Failure;
use cudarc::driver::{CudaStream, result};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Blocks a stream from the point of insertion until it is released or dropped, or for 20 ms.
///
/// The limit excludes deadlocks: a full queue (about 1000 entries) or a launch that waits for the device stops the host
/// for no longer.
pub(super) struct StreamBlocker(Latch);

type Latch = Arc<AtomicU8>;

const HOLDING: u8 = 0;
const RELEASED: u8 = 1;
const TIMED_OUT: u8 = 2;

const MAX_HOLD: Duration = Duration::from_millis(20);

impl StreamBlocker {
    /// Inserts a blocker after everything enqueued so far.
    pub(super) fn insert(stream: &CudaStream) -> Result<Self, Failure> {
        stream.context().bind_to_thread()?;
        let latch = Latch::default();
        let shared = Arc::into_raw(latch.clone());
        // SAFETY: the stream is valid and its context is current. The driver calls `hold` once with a reference to the
        // latch that is not dropped elsewhere; if the stream fails before that, the reference leaks, and nothing is
        // freed early.
        let enqueued =
            unsafe { result::stream::launch_host_function(stream.cu_stream(), hold, shared.cast_mut().cast()) };
        if let Err(error) = enqueued {
            // SAFETY: it was not enqueued, so this function still owns the reference.
            drop(unsafe { Arc::from_raw(shared) });
            return Err(error.into());
        }
        Ok(Self(latch))
    }

    /// Unblocks the device; returns true if it was blocked until now, so that nothing ran too early.
    pub(super) fn release(self) -> bool {
        end_hold(&self.0, RELEASED)
    }
}

impl Drop for StreamBlocker {
    fn drop(&mut self) {
        end_hold(&self.0, RELEASED);
    }
}

/// Ends the blocking, unless the other side already has.
fn end_hold(latch: &AtomicU8, end: u8) -> bool {
    latch.compare_exchange(HOLDING, end, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

/// Runs on a thread of the driver, where CUDA calls are forbidden.
unsafe extern "C" fn hold(latch: *mut c_void) {
    // SAFETY: `insert` passed a reference to a latch for this call.
    let latch = unsafe { Arc::from_raw(latch.cast::<AtomicU8>()) };
    let begun = Instant::now();
    while latch.load(Ordering::Acquire) == HOLDING {
        if begun.elapsed() >= MAX_HOLD {
            end_hold(&latch, TIMED_OUT);
        }
        // Yields: sleeping would wake up late and idle the device, and spinning could take the host's only core.
        thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A blocker, and the driver's callback when a stream reaches it.
    fn inserted() -> (StreamBlocker, impl FnOnce()) {
        let latch = Latch::default();
        let shared = Arc::into_raw(latch.clone());
        // SAFETY: a reference to the latch for this call.
        (StreamBlocker(latch), move || unsafe { hold(shared.cast_mut().cast()) })
    }

    #[test]
    fn unreleased_blocker_times_out() {
        let (plug, stream) = inserted();
        stream();
        assert!(!plug.release());
    }

    #[test]
    fn early_release_counts_as_held() {
        let (plug, stream) = inserted();
        assert!(plug.release());
        stream();
    }

    #[test]
    fn dropped_blocker_releases_the_stream() {
        let (plug, stream) = inserted();
        let latch = plug.0.clone();
        drop(plug);
        stream();
        assert_eq!(latch.load(Ordering::Acquire), RELEASED);
        assert_eq!(Arc::strong_count(&latch), 1);
    }
}
