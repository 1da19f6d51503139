//! Any closure as a work.

use crate::{Failure, Work};
use std::hint::black_box;

/// A closure that has done its work when it returns.
pub struct Closure<F>(F);

impl<F: FnMut() -> T + Send, T> Closure<F> {
    /// Wraps a closure; what it returns is kept from the optimizer.
    pub fn new(body: F) -> Self {
        Self(body)
    }
}

impl<F: FnMut() -> T + Send, T> Work for Closure<F> {
    fn launch(&mut self) -> Result<(), Failure> {
        black_box((self.0)());
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
