//! Prefetch of the next group's inputs and references while the current group is timed.
//!
//! The prefetch uses part of the worker's threads at the lowest priority. Anything that is missing when the next group
//! starts is computed then. Errors are ignored here; the group computes the item again and reports them.

use super::operands::{GroupOperands, InputKind};
use super::protocol::AssignedCase;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The prefetch uses one in this many threads; the others remain for the timed work.
const THREAD_DIVISOR: usize = 2;

/// Minimum number of worker threads for a prefetch.
const MIN_THREADS: usize = 4;

/// Increment of the nice value, so that other threads have priority.
const NICE_INCREMENT: i32 = 19;

/// Operands of the next group that are being computed.
pub(crate) struct InputPrefetch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<GroupOperands>,
}

impl InputPrefetch {
    /// Starts the prefetch if there are enough threads.
    pub(crate) fn start(next: &[AssignedCase]) -> Option<Self> {
        let threads = rayon::current_num_threads();
        if threads < MIN_THREADS {
            return None;
        }
        Self::start_with_threads(threads / THREAD_DIVISOR, next)
    }

    fn start_with_threads(threads: usize, next: &[AssignedCase]) -> Option<Self> {
        let mut operands = GroupOperands::new(next.first()?);
        // Failure to change the priority is ignored.
        let nice = |_| {
            let _ = rustix::process::nice(NICE_INCREMENT);
        };
        let pool: ThreadPool = ThreadPoolBuilder::new().num_threads(threads).start_handler(nice).build().ok()?;
        let (stop, cases) = (Arc::new(AtomicBool::new(false)), next.to_vec());
        let stopped = stop.clone();
        let make = move || {
            pool.install(|| prefetch(&mut operands, &cases, &stopped));
            operands
        };
        let maker = std::thread::Builder::new().spawn(make).ok()?;
        Some(Self { stop, thread: maker })
    }

    /// Stops the prefetch and returns what is ready.
    pub(crate) fn finish(self) -> Option<GroupOperands> {
        self.stop.store(true, Ordering::Relaxed);
        // After a panic nothing is returned; the panic recurs when the group computes the item itself.
        self.thread.join().ok()
    }
}

/// Computes everything that the cases will request, in the order in which they do.
fn prefetch(operands: &mut GroupOperands, cases: &[AssignedCase], stopped: &AtomicBool) {
    for content in [InputKind::Gate, InputKind::Timed] {
        for case in cases {
            if stopped.load(Ordering::Relaxed) {
                return;
            }
            let _ = operands.references(content, &case.spec.treatment);
        }
    }
    if let Some(first) = cases.first().filter(|_| !stopped.load(Ordering::Relaxed)) {
        let _ = operands.accuracy_reference(&first.case);
    }
}

#[cfg(test)]
mod tests {
    use super::super::remaining::tests::{assignment, spec};
    use super::*;

    #[test]
    fn prefetched_operands_match_computed_ones() {
        let mut next = assignment(2).cases;
        next[1].spec = spec("linear", "int8wo");
        let ahead = InputPrefetch::start_with_threads(2, &next).unwrap();
        while !ahead.thread.is_finished() {
            std::thread::yield_now();
        }
        let mut ahead = ahead.finish().unwrap();
        let mut own = GroupOperands::new(&next[0]);
        let treatment = next[1].spec.treatment;
        // Two recipes on two kinds of inputs.
        assert!(ahead.is_equivalent(&own) && ahead.references.len() == 4);
        for content in [InputKind::Gate, InputKind::Timed] {
            assert_eq!(ahead.inputs_for(content), own.inputs_for(content));
            assert_eq!(ahead.references(content, &treatment).unwrap(), own.references(content, &treatment).unwrap());
        }
        next[0].spec.task = next[0].spec.task.clone().with_seed(8);
        assert!(!ahead.is_equivalent(&GroupOperands::new(&next[0])));
    }

    #[test]
    fn empty_group_prefetches_nothing() {
        assert!(InputPrefetch::start_with_threads(1, &[]).is_none());
    }
}
