//! What is printed to be read on.

use crate::shown::shown;
use std::io::{ErrorKind, Result, Write, stdout};

/// Prints to standard output.
pub fn print(text: &str) -> Result<()> {
    let mut out = stdout();
    heard(out.write_all(shown(text).as_bytes()).and_then(|()| out.flush()))
}

/// A reader that has gone away, such as `head`, has seen enough; anything else that keeps text from being written is an
/// error.
pub fn heard(written: Result<()>) -> Result<()> {
    written.or_else(|error| if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}
