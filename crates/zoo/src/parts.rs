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
//! let recorded = parts::record(Vec::new(), pass)?;
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
pub struct Part {
    /// Name.
    pub name: &'static str,
    /// Start time; everything before the part had completed.
    pub began: Instant,
}

/// Parts recorded on this thread, and the first error.
#[derive(Default)]
struct Heard {
    parts: Vec<Part>,
    failed: Option<ZooError>,
}

thread_local! {
    static HEARD: RefCell<Option<Heard>> = const { RefCell::new(None) };
}

/// Removes the recorder when dropped, also if the pass panics.
struct Listening;

impl Drop for Listening {
    fn drop(&mut self) {
        HEARD.take();
    }
}

/// Marks the start of a part on the launching thread. While a recorder is active, `synchronize` waits for all earlier
/// work.
pub fn begin(name: &'static str, synchronize: impl FnOnce() -> Result<(), ZooError>) {
    if HEARD.with_borrow(Option::is_none) {
        return;
    }
    let synchronized = synchronize();
    HEARD.with_borrow_mut(|heard| {
        let Some(heard) = heard else { return };
        match synchronized {
            Ok(()) => heard.parts.push(Part { name, began: Instant::now() }),
            Err(error) => drop(heard.failed.get_or_insert(error)),
        }
    });
}

/// Marks the start of a part on the device of a tensor.
pub fn begin_on<B: Backend, const D: usize>(name: &'static str, tensor: &Tensor<B, D>) {
    begin(name, || B::sync(&tensor.device()).map_err(|error| ZooError::Device(format!("{error:?}"))));
}

/// Runs a pass and returns its parts. `buffer` is allocated by the caller, before the measurement.
pub fn heard<E: From<ZooError>>(buffer: Vec<Part>, run: impl FnOnce() -> Result<(), E>) -> Result<Vec<Part>, E> {
    HEARD.set(Some(Heard { parts: buffer, failed: None }));
    let guard = Listening;
    run()?;
    let Heard { parts, failed } = HEARD.take().unwrap_or_default();
    drop(guard);
    failed.map_or(Ok(parts), |error| Err(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_waits_while_nobody_listens() {
        begin(FORWARD, || panic!("synchronized without recorder"));
        let panicked = std::panic::catch_unwind(|| heard::<ZooError>(Vec::new(), || panic!("failing pass")));
        assert!(panicked.is_err());
        begin(FORWARD, || panic!("synchronized after the recorder was removed"));
    }

    #[test]
    fn what_cannot_be_waited_for_is_an_error_and_no_part() {
        let lost = || ZooError::Device("lost".into());
        let pass = || -> Result<(), ZooError> {
            begin(FORWARD, || Ok(()));
            begin(BACKWARD, || Err(lost()));
            Ok(())
        };
        assert_eq!(heard(Vec::new(), pass), Err(lost()));
    }
}
