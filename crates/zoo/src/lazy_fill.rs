//! Computation of lazy values inside a lock.
//!
//! A rayon call inside the initializer of a `OnceLock` may deadlock: while it waits, its thread may take over another task
//! that waits for the same lock. Initializers therefore use their own threads.

use std::sync::{Mutex, PoisonError};

/// Number of values that one thread computes without help.
const MAX_SERIAL_LEN: usize = 1 << 17;

/// Calls `fill` with the index and the values of every chunk of `chunk` values, in as many threads as rayon has.
pub(crate) fn fill_chunks(values: &mut [f32], chunk: usize, fill: impl Fn(usize, &mut [f32]) + Sync) {
    let threads = rayon::current_num_threads().min(values.len() / MAX_SERIAL_LEN + 1);
    let chunks = Mutex::new(values.chunks_mut(chunk.max(1)).enumerate());
    let next = || chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some((index, values)) = next() {
            fill(index, values);
        }
    };
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| {
            scope.spawn(work);
        });
        work();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_is_filled_once() {
        for (len, chunk) in [(0, 3), (10, 3), (4 * MAX_SERIAL_LEN + 1, 1000)] {
            let mut values = vec![0.0; len];
            fill_chunks(&mut values, chunk, |index, values| values.iter_mut().for_each(|value| *value += index as f32));
            assert!(values.iter().enumerate().all(|(at, &value)| value == (at / chunk) as f32), "{len} {chunk}");
        }
    }
}
