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
        notify_allocated(block, layout);
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let block = unsafe { self.0.alloc_zeroed(layout) };
        notify_allocated(block, layout);
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // Recorded before the call: afterwards another thread may already have reused and recorded the address.
        notify(|ledger| ledger.record_free(address(block), layout.size()));
        // SAFETY: as above.
        unsafe { self.0.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let from = address(block);
        // SAFETY: as above.
        let moved = unsafe { self.0.realloc(block, layout, new_size) };
        if !moved.is_null() {
            notify(|ledger| ledger.record_move((from, layout.size()), (address(moved), new_size)));
        }
        moved
    }
}

fn address(block: *mut u8) -> u64 {
    block.addr() as u64
}

#[inline]
fn notify_allocated(block: *mut u8, layout: Layout) {
    if !block.is_null() {
        notify(|ledger| ledger.record_allocation(address(block), layout.size()));
    }
}

static LISTENER: AtomicPtr<Ledger> = AtomicPtr::new(ptr::null_mut());
/// Threads that may be using the listener's ledger.
static ACTIVE_WRITERS: AtomicUsize = AtomicUsize::new(0);

#[inline]
fn notify(what: impl FnOnce(&Ledger)) {
    if !LISTENER.load(Ordering::Relaxed).is_null() {
        notify_listener(what);
    }
}

#[cold]
fn notify_listener(what: impl FnOnce(&Ledger)) {
    ACTIVE_WRITERS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: `ActiveLedger` does not release a visible ledger while `WRITING` counts this thread. In the total order of
    // these four operations, either it withdrew the ledger before this load, or it sees the count.
    if let Some(ledger) = unsafe { LISTENER.load(Ordering::SeqCst).as_ref() } {
        what(ledger);
    }
    ACTIVE_WRITERS.fetch_sub(1, Ordering::Release);
}

/// Ledger that receives the allocator's events, until this is dropped.
pub(super) struct ActiveLedger(Arc<Ledger>);

impl ActiveLedger {
    /// Installs a ledger; `None` if another one is active.
    pub(super) fn install(ledger: Arc<Ledger>) -> Option<Self> {
        let pointer = Arc::as_ptr(&ledger).cast_mut();
        LISTENER.compare_exchange(ptr::null_mut(), pointer, Ordering::SeqCst, Ordering::SeqCst).ok()?;
        Some(Self(ledger))
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.0
    }

    /// Deactivates the ledger and returns it when no thread writes to it any more.
    pub(super) fn remove(self) -> Arc<Ledger> {
        self.0.clone()
    }
}

impl Drop for ActiveLedger {
    fn drop(&mut self) {
        LISTENER.store(ptr::null_mut(), Ordering::SeqCst);
        while ACTIVE_WRITERS.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
    }
}
