//! Where a worker is, told without waking anybody: eight bytes of a file that the run reads when it wants to know.
//!
//! A message for each window would have the run's threads wake up just as the window opens, on the very cores that it
//! measures.

use super::event::Stage;
use std::fs::{File, OpenOptions, remove_file};
use std::io::{ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The file, shared by the run and one worker.
pub struct Position(File);

const STAGES: [Stage; 6] = [Stage::Open, Stage::Tune, Stage::Peaks, Stage::WarmUp, Stage::Measure, Stage::Profile];

impl Position {
    /// A new file, and the path at which the worker takes it over.
    pub fn create() -> Result<(Self, PathBuf)> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        loop {
            let name = format!("calorimeter-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                // Left behind by a run of the same number that was killed before its worker came to it.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                file => return Ok((Self(file?), path)),
            }
        }
    }

    /// Opens the run's file and takes its name away: nothing is left behind however the two of them end.
    pub fn take_over(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().write(true).open(path)?;
        remove_file(path)?;
        Ok(Self(file))
    }

    /// Nothing is touched.
    pub fn clear(&self) {
        self.store(0, 0);
    }

    /// This case is being touched.
    pub fn set(&self, case: usize, stage: Stage) {
        let stage = STAGES.iter().position(|&known| known == stage).unwrap_or_default();
        self.store(case as u32 + 1, stage as u32);
    }

    /// What is being touched.
    pub fn get(&self) -> Option<(usize, Stage)> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        let [case, stage] =
            [0, 4].map(|at| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
        Some((case.checked_sub(1)? as usize, *STAGES.get(stage as usize)?))
    }

    fn store(&self, case: u32, stage: u32) {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&case.to_le_bytes());
        bytes[4..].copy_from_slice(&stage.to_le_bytes());
        // Without it a crash has no culprit, which is said where it matters.
        let _ = self.0.write_all_at(&bytes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_worker_sets_the_run_reads() {
        let (run, path) = Position::create().unwrap();
        let worker = Position::take_over(&path).unwrap();
        assert!(!path.exists());
        assert_eq!(run.get(), None);
        for (case, stage) in [(0, Stage::Open), (7, Stage::Measure)] {
            worker.set(case, stage);
            assert_eq!(run.get(), Some((case, stage)));
        }
        run.clear();
        assert_eq!(run.get(), None);
    }

    #[test]
    fn what_a_killed_run_of_the_same_number_left_behind_is_passed_over() {
        let (_, path) = Position::create().unwrap();
        let (stem, count) = path.to_str().unwrap().rsplit_once('-').unwrap();
        let left: Vec<PathBuf> =
            (1..20).map(|n| format!("{stem}-{}", count.parse::<u32>().unwrap() + n).into()).collect();
        // Other tests may have taken some of these names.
        let left: Vec<PathBuf> = left.into_iter().filter(|path| File::create_new(path).is_ok()).collect();
        let (_, next) = Position::create().unwrap();
        assert!(!left.contains(&next));
        left.iter().chain([&path, &next]).for_each(|path| remove_file(path).unwrap());
    }
}
