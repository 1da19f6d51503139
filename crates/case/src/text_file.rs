//! Reading of text files with a size limit.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Reads a UTF-8 file of at most `max_bytes` bytes. Reading stops at the limit, so that pipes and devices
/// are safe to pass.
///
/// ```
/// let error = calorimeter_case::read_text("/dev/zero".as_ref(), 1 << 20).unwrap_err();
/// assert_eq!(error.to_string(), "exceeds 1 MiB, the size limit of such a file; shorten it");
/// ```
pub fn read_text(path: &Path, max_bytes: u64) -> Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(too_large_error(max_bytes, "such a file"));
    }
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

/// Error for input beyond the size limit.
pub fn too_large_error(max_bytes: u64, what: &str) -> Error {
    let limit = max_bytes >> 20;
    let message = format!("exceeds {limit} MiB, the size limit of {what}; shorten it");
    Error::new(ErrorKind::FileTooLarge, message)
}
