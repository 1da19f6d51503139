//! Printing of results to standard output.

use calorimeter_sinks::terminal::{WIDTH, escape_lines, escape_table};
use std::io::{ErrorKind, Result, Write, stdout};
use std::os::fd::AsFd;

/// Prints to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    write(&escape_lines(text))
}

/// Prints a table, which may be colored, to standard output.
pub(crate) fn print_table(text: &str) -> Result<()> {
    write(&escape_table(text))
}

fn write(text: &str) -> Result<()> {
    let mut out = stdout();
    ignore_broken_pipe(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Line width of standard output in characters; the default width if it is not a terminal.
pub(crate) fn width() -> usize {
    width_or_default(stdout())
}

/// Line width of an output in characters; the default width if it is not a terminal.
pub(crate) fn width_or_default(output: impl AsFd) -> usize {
    terminal_width(output).unwrap_or(WIDTH)
}

/// Line width in characters if the output is a terminal.
pub(crate) fn terminal_width(output: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(output).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// Treats a broken pipe as success: the reader, such as `head`, has read enough. Other errors are returned.
pub(crate) fn ignore_broken_pipe(written: Result<()>) -> Result<()> {
    written.or_else(|error| if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
}
