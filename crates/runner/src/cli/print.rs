//! What a command prints to be read on.

use crate::exit::Exit;
use crate::shown::shown;
use std::io::Write;

/// Prints to standard output; a reader that has gone away ends the printing quietly.
pub fn print(text: &str) -> Exit {
    let _ = std::io::stdout().write_all(shown(text).as_bytes());
    Exit::Fine
}
