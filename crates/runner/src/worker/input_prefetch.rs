//! Prefetch of the next group's inputs and references while the current group is timed.
//!
//! The prefetch uses part of the worker's threads at the lowest priority. Anything that is missing when the next group
//! starts is computed then. Errors are ignored here; the group computes the item again and reports them.

use super::operands::{GroupOperands, InputKind};
use super::protocol::NextGroup;
use calorimeter_case::Case;
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
pub struct InputPrefetch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<GroupOperands>,
}

impl InputPrefetch {
    /// Starts the prefetch if there are enough threads.
    pub fn start(next: &NextGroup) -> Option<Self> {
        let threads = rayon::current_num_threads();
        if threads < MIN_THREADS {
            return None;
        }
        Self::start_with_threads(threads / THREAD_DIVISOR, next)
    }

    fn start_with_threads(threads: usize, next: &NextGroup) -> Option<Self> {
        let mut operands = GroupOperands::new(next.cases.first()?, None, next.seed).ok()?;
        // Failure to change the priority is ignored.
        let nice = |_| {
            let _ = rustix::process::nice(NICE_INCREMENT);
        };
        let pool: ThreadPool = ThreadPoolBuilder::new().num_threads(threads).start_handler(nice).build().ok()?;
        let (stop, cases) = (Arc::new(AtomicBool::new(false)), next.cases.clone());
        let stopped = stop.clone();
        let make = move || {
            pool.install(|| prefetch(&mut operands, &cases, &stopped));
            operands
        };
        let maker = std::thread::Builder::new().spawn(make).ok()?;
        Some(Self { stop, thread: maker })
    }

    /// Stops the prefetch and returns what is ready.
    pub fn finish(self) -> Option<GroupOperands> {
        self.stop.store(true, Ordering::Relaxed);
        // After a panic nothing is returned; the panic recurs when the group computes the item itself.
        self.thread.join().ok()
    }
}

/// Computes everything that the cases will request, in the order in which they do.
fn prefetch(operands: &mut GroupOperands, cases: &[Case], stopped: &AtomicBool) {
    for content in [InputKind::Gate, InputKind::Timed] {
        for case in cases {
            if stopped.load(Ordering::Relaxed) {
                return;
            }
            if let Ok(treatment) = operands.treatment(case) {
                let _ = operands.references(content, &treatment);
            }
        }
    }
    if let Some(first) = cases.first().filter(|_| !stopped.load(Ordering::Relaxed)) {
        let _ = operands.accuracy_reference(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::Element;
    use calorimeter_shapes::Shape;

    fn next(recipes: &[&'static str]) -> NextGroup {
        let case = |&recipe: &&'static str| Case {
            workload: "linear".into(),
            recipe: recipe.into(),
            shape: Shape::new(16, 64, 32).unwrap().into(),
            element: Element::Float(calorimeter_case::Dtype::F32),
            ..Case::default()
        };
        NextGroup { cases: recipes.iter().map(case).collect(), seed: 7 }
    }

    #[test]
    fn prefetched_operands_match_computed_ones() {
        let next = next(&["int8wo", "no recipe", "baseline"]);
        let ahead = InputPrefetch::start_with_threads(2, &next).unwrap();
        while !ahead.thread.is_finished() {
            std::thread::yield_now();
        }
        let (mut ahead, case) = (ahead.finish().unwrap(), &next.cases[0]);
        let mut own = GroupOperands::new(case, None, next.seed).unwrap();
        let treatment = own.treatment(case).unwrap();
        // Two recipes on two kinds of inputs.
        assert!(ahead.is_equivalent(&own) && ahead.references.len() == 4);
        for content in [InputKind::Gate, InputKind::Timed] {
            assert_eq!(ahead.inputs_for(content), own.inputs_for(content));
            assert_eq!(ahead.references(content, &treatment).unwrap(), own.references(content, &treatment).unwrap());
        }
        let other = GroupOperands::new(case, None, 8).unwrap();
        assert!(!ahead.is_equivalent(&other));
    }

    #[test]
    fn empty_group_prefetches_nothing() {
        assert!(InputPrefetch::start_with_threads(1, &next(&[])).is_none());
    }
}
