//! Prefetch of the next group's inputs and references while the current group is timed.
//!
//! It uses part of the worker's threads at the lowest priority. Anything that is missing when the next group starts is
//! computed then. Errors are ignored here; the group computes the item again and reports them.

use super::operands::{Content, Operands};
use super::protocol::Next;
use calorimeter_case::Case;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The prefetch uses one in this many threads; the others remain for the timed work.
const ONE_IN: usize = 2;

/// Minimum number of worker threads for a prefetch.
const FEWEST: usize = 4;

/// Increment of the nice value, so that other threads have priority.
const NICE: i32 = 19;

/// Operands of the next group that are being computed.
pub struct Ahead {
    stop: Arc<AtomicBool>,
    maker: JoinHandle<Operands>,
}

impl Ahead {
    /// Starts the prefetch if there are enough threads.
    pub fn begin(next: &Next) -> Option<Self> {
        let threads = rayon::current_num_threads();
        if threads < FEWEST {
            return None;
        }
        Self::on(threads / ONE_IN, next)
    }

    fn on(threads: usize, next: &Next) -> Option<Self> {
        let mut operands = Operands::of(next.cases.first()?, None, next.seed).ok()?;
        // Failure to change the priority is ignored.
        let nice = |_| {
            let _ = rustix::process::nice(NICE);
        };
        let pool: ThreadPool = ThreadPoolBuilder::new().num_threads(threads).start_handler(nice).build().ok()?;
        let (stop, cases) = (Arc::new(AtomicBool::new(false)), next.cases.clone());
        let stopped = stop.clone();
        let make = move || {
            pool.install(|| make(&mut operands, &cases, &stopped));
            operands
        };
        let maker = std::thread::Builder::new().spawn(make).ok()?;
        Some(Self { stop, maker })
    }

    /// Stops the prefetch and returns what is ready.
    pub fn end(self) -> Option<Operands> {
        self.stop.store(true, Ordering::Relaxed);
        // After a panic nothing is returned; the panic recurs when the group computes the item itself.
        self.maker.join().ok()
    }
}

/// Computes everything that the cases will request, in the order in which they do.
fn make(operands: &mut Operands, cases: &[Case], stopped: &AtomicBool) {
    for content in [Content::Gate, Content::Timed] {
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
        let _ = operands.yardstick(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_case::Element;
    use calorimeter_shapes::Shape;

    fn next(recipes: &[&'static str]) -> Next {
        let case = |&recipe: &&'static str| Case {
            workload: "linear".into(),
            recipe: recipe.into(),
            shape: Shape::new(16, 64, 32).unwrap().into(),
            element: Element::Float(calorimeter_case::Dtype::F32),
            ..Case::default()
        };
        Next { cases: recipes.iter().map(case).collect(), seed: 7 }
    }

    #[test]
    fn what_is_made_ahead_is_what_the_group_would_make() {
        let next = next(&["int8wo", "no recipe", "baseline"]);
        let ahead = Ahead::on(2, &next).unwrap();
        while !ahead.maker.is_finished() {
            std::thread::yield_now();
        }
        let (mut ahead, case) = (ahead.end().unwrap(), &next.cases[0]);
        let mut own = Operands::of(case, None, next.seed).unwrap();
        let treatment = own.treatment(case).unwrap();
        // Two recipes on two kinds of inputs.
        assert!(ahead.is_for(&own) && ahead.references.len() == 4);
        for content in [Content::Gate, Content::Timed] {
            assert_eq!(ahead.inputs_of(content), own.inputs_of(content));
            assert_eq!(ahead.references(content, &treatment).unwrap(), own.references(content, &treatment).unwrap());
        }
        let other = Operands::of(case, None, 8).unwrap();
        assert!(!ahead.is_for(&other));
    }

    #[test]
    fn nothing_is_made_of_nothing() {
        assert!(Ahead::on(1, &next(&[])).is_none());
    }
}
