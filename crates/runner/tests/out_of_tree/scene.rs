//! Temporary folder in which a program runs, and the output of the program.

use calorimeter_sinks::Record;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Temporary folder with configuration files.
pub(crate) struct Scene(TempDir);

impl Scene {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Creates a folder with `c.yml`.
    pub(crate) fn with(config: &str) -> Self {
        let scene = Self::new();
        scene.write("c.yml", config);
        scene
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    /// Removes outer settings. Graphics drivers require a runtime directory.
    pub(crate) fn prepare(&self, command: &mut Command) {
        command.current_dir(self.0.path()).stdin(Stdio::null());
        for name in ["RUST_BACKTRACE", "CALORIMETER_DEVICE", "CALORIMETER_MOCK_DEVICES", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        command.env("XDG_CACHE_HOME", self.path("cache")).env("XDG_RUNTIME_DIR", self.0.path());
    }
}

/// Exit code and output of a program.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for ProgramOutput {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl ProgramOutput {
    pub(crate) fn from_command(command: &mut Command) -> Self {
        command.output().unwrap().into()
    }

    /// Returns the only error message of a program that failed with code 2.
    pub(crate) fn error(&self) -> &str {
        assert_eq!(self.code, Some(2), "{self:?}");
        let errors: Vec<&str> = self.stderr.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
        assert_eq!((errors.len(), self.stderr.lines().count()), (1, 1), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        errors[0]
    }

    pub(crate) fn expect_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Standard output as JSON objects, one per line.
    pub(crate) fn objects(&self) -> Vec<serde_json::Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Standard output as records.
    pub(crate) fn records(&self) -> Vec<Record> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The only record whose id contains a text.
pub(crate) fn find_record<'a>(records: &'a [Record], part: &str) -> &'a Record {
    let found: Vec<&Record> = records.iter().filter(|record| record.case.id.contains(part)).collect();
    assert_eq!(found.len(), 1, "{part}");
    found[0]
}
