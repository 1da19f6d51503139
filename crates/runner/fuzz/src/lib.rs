//! Shared code of the fuzz targets: writes the input to a file and reads it. Readers must accept a file or fail with a
//! proper error message.

use std::sync::LazyLock;

#[path = "../../tests/program/readers.rs"]
pub mod readers;

/// Runs a reader on a file with this content.
pub fn check_reader(name: &str, reader: readers::Reader, data: &[u8]) {
    static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("temporary folder"));
    let path = FOLDER.path().join(name);
    std::fs::write(&path, data).expect("writable temporary folder");
    if let Err(fault) = reader(&path).map_err(|error| readers::faults(&error)) {
        assert_eq!(fault, None);
    }
}
