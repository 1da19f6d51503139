//! What comes one after another in a pass, such as the three parts of a training step. A part that begins waits for the one
//! before it while somebody listens, and costs one look otherwise: a pass that is timed waits for nothing.
//!
//! ```
//! use calorimeter_zoo::{ZooError, parts};
//!
//! let pass = || -> Result<(), ZooError> {
//!     parts::begin(parts::FORWARD, || Ok(()));
//!     parts::begin(parts::BACKWARD, || Ok(()));
//!     Ok(())
//! };
//! let heard = parts::heard(Vec::new(), pass)?;
//! assert_eq!(heard.iter().map(|part| part.name).collect::<Vec<_>>(), ["forward", "backward"]);
//! # Ok::<(), ZooError>(())
//! ```

use crate::ZooError;
use burn::tensor::{Tensor, backend::Backend};
use std::cell::RefCell;
use std::time::Instant;

/// The way to the output.
pub const FORWARD: &str = "forward";
/// The way back, to the gradients.
pub const BACKWARD: &str = "backward";
/// What an optimizer makes of gradients.
pub const OPTIMIZER: &str = "optimizer";

/// A part of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub name: &'static str,
    /// When it began: everything before it had run.
    pub began: Instant,
}

/// What a listener has heard.
#[derive(Default)]
struct Heard {
    parts: Vec<Part>,
    failed: Option<ZooError>,
}

thread_local! {
    static HEARD: RefCell<Option<Heard>> = const { RefCell::new(None) };
}

/// A listener, who is gone when this is dropped: a pass may panic.
struct Listening;

impl Drop for Listening {
    fn drop(&mut self) {
        HEARD.take();
    }
}

/// Begins a part of a pass on the thread that launches it; `settle` waits for everything before it, while somebody listens.
pub fn begin(name: &'static str, settle: impl FnOnce() -> Result<(), ZooError>) {
    if HEARD.with_borrow(Option::is_none) {
        return;
    }
    let settled = settle();
    HEARD.with_borrow_mut(|heard| {
        let Some(heard) = heard else { return };
        match settled {
            Ok(()) => heard.parts.push(Part { name, began: Instant::now() }),
            Err(error) => drop(heard.failed.get_or_insert(error)),
        }
    });
}

/// Begins a part of a pass on the device that a tensor is on.
pub fn begin_on<B: Backend, const D: usize>(name: &'static str, tensor: &Tensor<B, D>) {
    begin(name, || B::sync(&tensor.device()).map_err(|error| ZooError::Device(format!("{error:?}"))));
}

/// Runs a pass and answers its parts, in memory that was taken before.
pub fn heard<E: From<ZooError>>(room: Vec<Part>, run: impl FnOnce() -> Result<(), E>) -> Result<Vec<Part>, E> {
    HEARD.set(Some(Heard { parts: room, failed: None }));
    let listening = Listening;
    run()?;
    let Heard { parts, failed } = HEARD.take().unwrap_or_default();
    drop(listening);
    failed.map_or(Ok(parts), |error| Err(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_waits_while_nobody_listens() {
        begin(FORWARD, || panic!("it waits"));
        let panicked = std::panic::catch_unwind(|| heard::<ZooError>(Vec::new(), || panic!("a pass panics")));
        assert!(panicked.is_err());
        begin(FORWARD, || panic!("it waits for a listener that is gone"));
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
