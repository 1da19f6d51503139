//! The allocator that counts, and the one place that knows who listens.

use super::ledger::Ledger;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// An allocator that tells a [`Recording`](super::Recording) what passes through it to the one inside.
///
/// While nothing records, a call costs one relaxed load more than the allocator inside. To be declared with
/// `#[global_allocator]`: there is one recording per process, so two of these would be recorded together.
#[derive(Debug, Clone, Copy, Default)]
pub struct CountingAllocator<A = System>(
    /// The allocator that does the work.
    pub A,
);

// SAFETY: every call goes to the allocator inside with the arguments it came with, and its answer comes back unchanged.
// Telling the listener neither allocates, nor locks, nor panics.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those asked for here.
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
        // Told before: afterwards another thread may have got the address, and told so, already.
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
/// Threads that may be looking at the listener's ledger.
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
    // SAFETY: while `WRITING` counts this thread, `Listening` does not let go of a ledger that could be seen here: in the
    // one order of these four operations, either it withdrew the ledger before this load, or it sees the count.
    if let Some(ledger) = unsafe { LISTENER.load(Ordering::SeqCst).as_ref() } {
        what(ledger);
    }
    WRITING.fetch_sub(1, Ordering::Release);
}

/// A ledger into which the allocator writes, until this is dropped.
pub struct Listening(Arc<Ledger>);

impl Listening {
    /// `None` where another ledger listens already.
    pub fn start(ledger: Arc<Ledger>) -> Option<Self> {
        let pointer = Arc::as_ptr(&ledger).cast_mut();
        LISTENER.compare_exchange(ptr::null_mut(), pointer, Ordering::SeqCst, Ordering::SeqCst).ok()?;
        Some(Self(ledger))
    }

    pub fn ledger(&self) -> &Ledger {
        &self.0
    }

    /// The ledger, when nobody writes into it any more.
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
