//! Closures as work.

use crate::{Failure, Work};
use std::hint::black_box;

/// A closure whose work is complete when it returns.
pub struct Closure<F>(F);

impl<F: FnMut() -> T + Send, T> Closure<F> {
    /// Wraps a closure and hides its result from the optimizer.
    pub fn new(body: F) -> Self {
        Self(body)
    }
}

impl<F: FnMut() -> T + Send, T> Work for Closure<F> {
    fn launch(&mut self) -> Result<(), Failure> {
        black_box((self.0)());
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
