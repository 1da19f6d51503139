//! Files that are read whole, and none without end.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// The text of a file that is at most so many bytes long. Of a longer one, a pipe or a device among them, no more is read.
///
/// ```
/// let error = calorimeter_case::read_text("/dev/zero".as_ref(), 1 << 20).unwrap_err();
/// assert_eq!(error.to_string(), "it is longer than 1 MiB, the most that is read of such a file; make it shorter");
/// ```
pub fn read_text(path: &Path, most: u64) -> Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_long(most, "such a file"));
    }
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

/// The error of what is longer than is read of it.
pub fn too_long(most: u64, what: &str) -> Error {
    let most = most >> 20;
    let says = format!("it is longer than {most} MiB, the most that is read of {what}; make it shorter");
    Error::new(ErrorKind::FileTooLarge, says)
}
