//! Where a worker is, told without waking anybody: eight bytes of a file that the run reads when it wants to know.
//!
//! A message for each window would have the run's threads wake up just as the window opens, on the very cores that it
//! measures.

use super::event::Stage;
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::{File, OpenOptions};
use std::io::Result;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

/// The file, which has no name, shared by the run and one worker.
pub struct Position(File);

const STAGES: [Stage; 7] =
    [Stage::Open, Stage::Tune, Stage::Peaks, Stage::WarmUp, Stage::Measure, Stage::Profile, Stage::Judge];

impl Position {
    /// A new file.
    pub fn create() -> Result<Self> {
        let created = Self(nameless()?);
        // What is written now has its place, however full the memory or the disk gets.
        created.clear()?;
        Ok(created)
    }

    /// Starts a process that inherits the file.
    pub fn inherited<T>(&self, start: impl FnOnce() -> Result<T>) -> Result<T> {
        // One at a time, or what is started beside it would inherit the file as well.
        static STARTING: Mutex<()> = Mutex::new(());
        let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        fcntl_setfd(&self.0, FdFlags::empty())?;
        let started = start();
        fcntl_setfd(&self.0, FdFlags::CLOEXEC)?;
        started
    }

    /// Its number, in the run and in the worker that inherits it.
    pub fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Opens the file that was inherited under a number.
    pub fn take_over(number: i32) -> Result<Self> {
        Ok(Self(OpenOptions::new().write(true).open(format!("/dev/fd/{number}"))?))
    }

    /// Nothing is touched.
    pub fn clear(&self) -> Result<()> {
        self.store(0, 0)
    }

    /// This case is being touched.
    pub fn set(&self, case: usize, stage: Stage) -> Result<()> {
        let stage = STAGES.iter().position(|&known| known == stage).unwrap_or_default();
        self.store(case as u32 + 1, stage as u32)
    }

    /// What is being touched.
    pub fn get(&self) -> Option<(usize, Stage)> {
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

/// Nothing is left behind however a run ends, and no folder for temporary files can be full.
#[cfg(target_os = "linux")]
fn nameless() -> Result<File> {
    Ok(rustix::fs::memfd_create("calorimeter-position", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

/// A file whose name is taken away at once.
#[cfg(not(target_os = "linux"))]
fn nameless() -> Result<File> {
    let path = std::env::temp_dir().join(format!("calorimeter-{}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_worker_sets_the_run_reads() {
        let run = Position::create().unwrap();
        let worker = Position::take_over(run.number()).unwrap();
        assert_eq!(run.get(), None);
        for (case, stage) in [(0, Stage::Open), (7, Stage::Measure), (7, Stage::Judge)] {
            worker.set(case, stage).unwrap();
            assert_eq!(run.get(), Some((case, stage)));
        }
        run.clear().unwrap();
        assert_eq!(run.get(), None);
    }

    #[test]
    fn only_the_process_that_is_meant_inherits_the_file() {
        let run = Position::create().unwrap();
        let sees = || {
            Ok(std::process::Command::new("test")
                .arg("-e")
                .arg(format!("/dev/fd/{}", run.number()))
                .status()?
                .success())
        };
        assert_eq!((run.inherited(sees).unwrap(), sees().unwrap()), (true, false));
    }
}
