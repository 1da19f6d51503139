//! File that two processes share.
//!
//! The file is in memory (`/dev/shm`), if the folder `/dev/shm` exists. The other process maps the file. This process
//! reads and writes the file by system calls, so that no code of this process dereferences memory that another process
//! may change. On Linux, the file has no name in any folder, so that nothing remains if this process is killed.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use tempfile::TempPath;

/// File that two processes share.
pub(crate) struct SharedFile {
    file: File,
    /// Path by which the other process opens the file.
    pub path: String,
    /// Removes a file that has a name.
    _name: Option<TempPath>,
}

impl SharedFile {
    /// Creates a file of zeros.
    pub(crate) fn new(bytes: u64) -> io::Result<Self> {
        let folder = if Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
        let (file, path, name) = if Path::new("/proc/self/fd").is_dir() {
            let file = tempfile::tempfile_in(folder)?;
            let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
            (file, path, None)
        } else {
            let (file, path) = tempfile::Builder::new().prefix("calorimeter-").tempfile_in(folder)?.into_parts();
            (file, path.display().to_string(), Some(path))
        };
        file.set_len(bytes)?;
        Ok(Self { file, path, _name: name })
    }

    /// Writes bytes. Every byte is written before the other process maps the file, so that a full disk causes an error
    /// in this process, and not a signal in the other process.
    pub(crate) fn write(&self, first: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, first)
    }

    /// Reads bytes.
    pub(crate) fn read(&self, first: u64, bytes: u64) -> io::Result<Vec<u8>> {
        let mut into = vec![0; bytes as usize];
        self.file.read_exact_at(&mut into, first)?;
        Ok(into)
    }
}
