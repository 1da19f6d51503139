//! Messages on standard error. A closed pipe or a full disk is ignored.

use crate::terminal::escape_lines;
use std::fmt::Arguments;
use std::io::Write;

/// Writes a line to standard error. Unlike `eprintln!`, it does not panic if writing fails, and escapes control
/// characters.
#[macro_export]
macro_rules! log_line {
    ($($arguments:tt)*) => { $crate::write_log_line(format_args!($($arguments)*)) };
}

/// Writes a line to standard error, ignoring errors; see [`log_line!`](crate::log_line!).
pub fn write_log_line(arguments: Arguments<'_>) {
    let _ = std::io::stderr().write_all(escape_lines(&format!("{arguments}\n")).as_bytes());
}
