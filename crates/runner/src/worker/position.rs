//! Shared progress file: eight bytes that the worker writes and the run polls.
//!
//! A message per window would wake the run's threads just as the window starts, on the cores that it measures.

use super::event::Stage;
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::{File, OpenOptions};
use std::io::Result;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

/// Unnamed file shared by the run and one worker.
pub(super) struct ProgressFile(File);

const STAGES: [Stage; 7] =
    [Stage::Open, Stage::Tune, Stage::Peaks, Stage::WarmUp, Stage::Measure, Stage::Profile, Stage::Check];

impl ProgressFile {
    /// Creates a file.
    pub(super) fn create() -> Result<Self> {
        let created = Self(anonymous_file()?);
        // Allocates the bytes now, so that later writes succeed even if memory or disk is full.
        created.clear()?;
        Ok(created)
    }

    /// Starts a process that inherits the file.
    pub(super) fn spawn_inheriting<T>(&self, start: impl FnOnce() -> Result<T>) -> Result<T> {
        // Serialized, or processes started concurrently would inherit the file, too.
        static STARTING: Mutex<()> = Mutex::new(());
        let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        fcntl_setfd(&self.0, FdFlags::empty())?;
        let started = start();
        fcntl_setfd(&self.0, FdFlags::CLOEXEC)?;
        started
    }

    /// File descriptor, which is equal in the run and in the worker.
    pub(super) fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Opens the inherited file by its descriptor.
    pub(super) fn open_inherited(number: i32) -> Result<Self> {
        Ok(Self(OpenOptions::new().write(true).open(format!("/dev/fd/{number}"))?))
    }

    /// Stores that no case is active.
    pub(super) fn clear(&self) -> Result<()> {
        self.store(0, 0)
    }

    /// Stores the active case and its stage.
    pub(super) fn set(&self, case: usize, stage: Stage) -> Result<()> {
        let stage = STAGES.iter().position(|&known| known == stage).unwrap_or_default();
        self.store(case as u32 + 1, stage as u32)
    }

    /// Returns the active case and its stage.
    pub(super) fn get(&self) -> Option<(usize, Stage)> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        let [case, stage] =
            [0, 4].map(|at| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
        Some((case.checked_sub(1)? as usize, *STAGES.get(stage as usize)?))
    }

    fn store(&self, case: u32, stage: u32) -> Result<()> {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&case.to_le_bytes());
        bytes[4..].copy_from_slice(&stage.to_le_bytes());
        self.0.write_all_at(&bytes, 0)
    }
}

/// Creates a file in memory: nothing remains after a crash, and no temporary directory can be full.
#[cfg(target_os = "linux")]
fn anonymous_file() -> Result<File> {
    Ok(rustix::fs::memfd_create("calorimeter-position", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

/// Creates a temporary file and unlinks it immediately.
#[cfg(not(target_os = "linux"))]
fn anonymous_file() -> Result<File> {
    let path = std::env::temp_dir().join(format!("calorimeter-{}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_reads_what_the_worker_sets() {
        let run = ProgressFile::create().unwrap();
        let worker = ProgressFile::open_inherited(run.descriptor()).unwrap();
        assert_eq!(run.get(), None);
        for (case, stage) in [(0, Stage::Open), (7, Stage::Measure), (7, Stage::Check)] {
            worker.set(case, stage).unwrap();
            assert_eq!(run.get(), Some((case, stage)));
        }
        run.clear().unwrap();
        assert_eq!(run.get(), None);
    }

    #[test]
    fn only_the_worker_inherits_the_file() {
        let run = ProgressFile::create().unwrap();
        let sees = || {
            Ok(std::process::Command::new("test")
                .arg("-e")
                .arg(format!("/dev/fd/{}", run.descriptor()))
                .status()?
                .success())
        };
        assert_eq!((run.spawn_inheriting(sees).unwrap(), sees().unwrap()), (true, false));
    }
}
