//! Counting allocator, and the ledger that it notifies.

use super::ledger::Ledger;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Allocator that reports allocations of an inner allocator to a [`Recording`](super::Recording).
///
/// Without a recording, a call costs one relaxed load more than the inner allocator. Declare it with
/// `#[global_allocator]`: there is one recording per process, so two such allocators would be recorded together.
#[derive(Debug, Clone, Copy, Default)]
pub struct CountingAllocator<A = System>(
    /// Inner allocator.
    pub A,
);

// SAFETY: every call is forwarded to the inner allocator with its arguments, and the result is returned unchanged. The
// notification does not allocate, lock or panic.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's guarantees are those required here.
        let block = unsafe { self.0.alloc(layout) };
        tell_allocated(block, layout);
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let block = unsafe { self.0.alloc_zeroed(layout) };
        tell_allocated(block, layout);
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // Recorded before the call: afterwards another thread may already have reused and recorded the address.
        tell(|ledger| ledger.freed(address(block), layout.size()));
        // SAFETY: as above.
        unsafe { self.0.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let from = address(block);
        // SAFETY: as above.
        let moved = unsafe { self.0.realloc(block, layout, new_size) };
        if !moved.is_null() {
            tell(|ledger| ledger.moved((from, layout.size()), (address(moved), new_size)));
        }
        moved
    }
}

fn address(block: *mut u8) -> u64 {
    block.addr() as u64
}

#[inline]
fn tell_allocated(block: *mut u8, layout: Layout) {
    if !block.is_null() {
        tell(|ledger| ledger.allocated(address(block), layout.size()));
    }
}

static LISTENER: AtomicPtr<Ledger> = AtomicPtr::new(ptr::null_mut());
/// Threads that may be using the listener's ledger.
static WRITING: AtomicUsize = AtomicUsize::new(0);

#[inline]
fn tell(what: impl FnOnce(&Ledger)) {
    if !LISTENER.load(Ordering::Relaxed).is_null() {
        tell_listener(what);
    }
}

#[cold]
fn tell_listener(what: impl FnOnce(&Ledger)) {
    WRITING.fetch_add(1, Ordering::SeqCst);
    // SAFETY: `Listening` does not release a visible ledger while `WRITING` counts this thread. In the total order of
    // these four operations, either it withdrew the ledger before this load, or it sees the count.
    if let Some(ledger) = unsafe { LISTENER.load(Ordering::SeqCst).as_ref() } {
        what(ledger);
    }
    WRITING.fetch_sub(1, Ordering::Release);
}

/// Ledger that receives the allocator's events, until this is dropped.
pub struct Listening(Arc<Ledger>);

impl Listening {
    /// Installs a ledger; `None` if another one is active.
    pub fn start(ledger: Arc<Ledger>) -> Option<Self> {
        let pointer = Arc::as_ptr(&ledger).cast_mut();
        LISTENER.compare_exchange(ptr::null_mut(), pointer, Ordering::SeqCst, Ordering::SeqCst).ok()?;
        Some(Self(ledger))
    }

    pub fn ledger(&self) -> &Ledger {
        &self.0
    }

    /// Deactivates the ledger and returns it when no thread writes to it any more.
    pub fn stop(self) -> Arc<Ledger> {
        self.0.clone()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        LISTENER.store(ptr::null_mut(), Ordering::SeqCst);
        while WRITING.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
    }
}
