//! What the fuzz targets share: a file is written, read as the program reads it, and refused in a sentence or not at all.

use std::sync::LazyLock;

#[path = "../../tests/claims/readers.rs"]
pub mod readers;

/// Hands a reader a file of these bytes.
pub fn hand(name: &str, reader: readers::Reader, data: &[u8]) {
    static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));
    let path = FOLDER.path().join(name);
    std::fs::write(&path, data).expect("a file in a temporary folder");
    if let Err(fault) = reader(&path).map_err(|error| readers::faults(&error)) {
        assert_eq!(fault, None);
    }
}
