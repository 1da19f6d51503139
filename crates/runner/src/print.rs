//! What is printed to be read on.

use crate::shown::shown;
use calorimeter_sinks::terminal::WIDTH;
use std::io::{ErrorKind, Result, Write, stdout};
use std::os::fd::AsFd;

/// Prints to standard output.
pub fn print(text: &str) -> Result<()> {
    let mut out = stdout();
    heard(out.write_all(shown(text).as_bytes()).and_then(|()| out.flush()))
}

/// How many characters a line of standard output takes. A file has no width, and gets lines of the usual one.
pub fn width() -> usize {
    width_of(stdout())
}

/// The same of another file.
pub fn width_of(file: impl AsFd) -> usize {
    match rustix::termios::tcgetwinsize(file) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => WIDTH,
    }
}

/// A reader that has gone away, such as `head`, has seen enough; anything else that keeps text from being written is an
/// error.
pub fn heard(written: Result<()>) -> Result<()> {
    written.or_else(|error| if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}
