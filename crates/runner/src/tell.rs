//! What a person is told on standard error. A reader that has gone away, or a full disk behind it, ends nothing.

use crate::shown::shown;
use std::fmt::Arguments;
use std::io::Write;

/// Writes a line to standard error, as `eprintln!` does, which panics where nobody can read it.
macro_rules! tell {
    ($($words:tt)*) => { $crate::tell::line(format_args!($($words)*)) };
}
pub(crate) use tell;

/// Writes a line to standard error, if it can be written.
pub fn line(words: Arguments<'_>) {
    let _ = std::io::stderr().write_all(shown(&format!("{words}\n")).as_bytes());
}
