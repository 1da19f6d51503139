//! Consecutive parts of a pass, such as forward, backward and optimizer of a training step.
//!
//! While a recorder is active, each part synchronizes with the part before it. Otherwise a part costs one check of a
//! thread-local variable, so timed passes are not synchronized.
//!
//! ```
//! use calorimeter_zoo::{ZooError, parts};
//!
//! let pass = || -> Result<(), ZooError> {
//!     parts::begin(parts::FORWARD, || Ok(()));
//!     parts::begin(parts::BACKWARD, || Ok(()));
//!     Ok(())
//! };
//! let recorded = parts::record_parts(Vec::new(), pass)?;
//! assert_eq!(recorded.iter().map(|part| part.name).collect::<Vec<_>>(), ["forward", "backward"]);
//! # Ok::<(), ZooError>(())
//! ```

use crate::ZooError;
use burn::tensor::{Tensor, backend::Backend};
use std::cell::RefCell;
use std::time::Instant;

/// Forward pass.
pub const FORWARD: &str = "forward";
/// Backward pass.
pub const BACKWARD: &str = "backward";
/// Optimizer step.
pub const OPTIMIZER: &str = "optimizer";

/// Start of a part of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassPart {
    /// Name.
    pub name: &'static str,
    /// Start time; everything before the part had completed.
    pub start: Instant,
}

/// Parts recorded on this thread, and the first error.
#[derive(Default)]
struct PartRecorder {
    parts: Vec<PassPart>,
    error: Option<ZooError>,
}

thread_local! {
    static RECORDER: RefCell<Option<PartRecorder>> = const { RefCell::new(None) };
}

/// Removes the recorder when dropped, also if the pass panics.
struct RecorderGuard;

impl Drop for RecorderGuard {
    fn drop(&mut self) {
        RECORDER.take();
    }
}

/// Marks the start of a part on the launching thread. While a recorder is active, `synchronize` waits for all earlier
/// work.
pub fn begin(name: &'static str, synchronize: impl FnOnce() -> Result<(), ZooError>) {
    if RECORDER.with_borrow(Option::is_none) {
        return;
    }
    let synchronized = synchronize();
    RECORDER.with_borrow_mut(|heard| {
        let Some(heard) = heard else { return };
        match synchronized {
            Ok(()) => heard.parts.push(PassPart { name, start: Instant::now() }),
            Err(error) => drop(heard.error.get_or_insert(error)),
        }
    });
}

/// Marks the start of a part on the device of a tensor.
pub fn begin_on<B: Backend, const D: usize>(name: &'static str, tensor: &Tensor<B, D>) {
    begin(name, || B::sync(&tensor.device()).map_err(|error| ZooError::Device(format!("{error:?}"))));
}

/// Runs a pass and returns its parts. `buffer` is allocated by the caller, before the measurement.
pub fn record_parts<E: From<ZooError>>(
    buffer: Vec<PassPart>,
    run: impl FnOnce() -> Result<(), E>,
) -> Result<Vec<PassPart>, E> {
    RECORDER.set(Some(PartRecorder { parts: buffer, error: None }));
    let guard = RecorderGuard;
    run()?;
    let PartRecorder { parts, error: failed } = RECORDER.take().unwrap_or_default();
    drop(guard);
    failed.map_or(Ok(parts), |error| Err(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begin_does_not_synchronize_without_recorder() {
        begin(FORWARD, || panic!("synchronized without recorder"));
        let panicked = std::panic::catch_unwind(|| record_parts::<ZooError>(Vec::new(), || panic!("failing pass")));
        assert!(panicked.is_err());
        begin(FORWARD, || panic!("synchronized after the recorder was removed"));
    }

    #[test]
    fn failed_synchronization_is_an_error() {
        let lost = || ZooError::Device("lost".into());
        let pass = || -> Result<(), ZooError> {
            begin(FORWARD, || Ok(()));
            begin(BACKWARD, || Err(lost()));
            Ok(())
        };
        assert_eq!(record_parts(Vec::new(), pass), Err(lost()));
    }
}
