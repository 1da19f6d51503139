//! Messages on standard error. A closed pipe or a full disk is ignored.

use calorimeter_sinks::terminal::escape_lines;
use std::fmt::Arguments;
use std::io::Write;

/// Writes a line to standard error. Unlike `eprintln!`, it does not panic if writing fails.
macro_rules! log_line {
    ($($arguments:tt)*) => { $crate::log_line::write_line(format_args!($($arguments)*)) };
}
pub(crate) use log_line;

/// Writes a line to standard error, ignoring errors.
pub fn write_line(arguments: Arguments<'_>) {
    let _ = std::io::stderr().write_all(escape_lines(&format!("{arguments}\n")).as_bytes());
}
