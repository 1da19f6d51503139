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

/// The same of another output.
pub fn width_of(output: impl AsFd) -> usize {
    terminal_width(output).unwrap_or(WIDTH)
}

/// How many characters a line takes, if the output is a terminal.
pub fn terminal_width(output: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(output).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// A reader that has gone away, such as `head`, has seen enough; anything else that keeps text from being written is an
/// error.
pub fn heard(written: Result<()>) -> Result<()> {
    written.or_else(|error| if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}
