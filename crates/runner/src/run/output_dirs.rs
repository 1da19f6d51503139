//! Output directories of a run.

use calorimeter_probe::host::now;
use calorimeter_sinks::SinkError;
use chrono::{DateTime, Local};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Output directories of a run.
#[derive(Debug, Clone)]
pub struct OutputDirs {
    /// Folder of the journal and the derived files.
    pub dir: PathBuf,
    /// Folder below which scripts for torchao expect its CSV files.
    pub output_dir: PathBuf,
}

impl OutputDirs {
    /// Uses one folder for everything.
    pub fn single(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), output_dir: dir.to_owned() }
    }

    /// Creates a folder for a run that starts now. Its name is the current second, with a number if it exists already.
    pub fn create_below(output_dir: &Path) -> Result<Self, SinkError> {
        let refused = |cause| SinkError::NotWritable { dir: output_dir.to_owned(), cause };
        fs::create_dir_all(output_dir).map_err(refused)?;
        let id = run_id(&now());
        let mut number = 1;
        loop {
            let name = if number == 1 { id.clone() } else { format!("{id}-{number}") };
            let dir = output_dir.join(name);
            // `create_dir` is atomic; a check beforehand would let two runs choose the same name.
            match fs::create_dir(&dir) {
                Ok(()) => return Ok(Self { dir, output_dir: output_dir.to_owned() }),
                Err(cause) if cause.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(cause) => return Err(refused(cause)),
            }
        }
    }

    /// Removes the empty folder of a run that could not start.
    pub fn remove_empty(&self) {
        let _ = fs::remove_dir(&self.dir);
    }

    /// Output directories of a run in a folder, from the path in its journal.
    pub fn from_journal(dir: &Path, stored: &Path) -> Self {
        let output_dir = match stored.to_str() {
            Some(".") => dir.to_owned(),
            Some("..") if dir.file_name().is_some() => dir.parent().unwrap_or(Path::new("")).to_owned(),
            Some("..") => dir.join(".."),
            // A journal may come from another user, so that other paths are ignored.
            _ => dir.to_owned(),
        };
        Self { dir: dir.to_owned(), output_dir }
    }

    /// Path of the output directory relative to the run's folder, so that both can be moved or renamed.
    pub(super) fn relative_to_run(&self) -> PathBuf {
        if self.output_dir == self.dir {
            ".".into()
        } else if self.dir.parent() == Some(&self.output_dir) {
            "..".into()
        } else {
            std::path::absolute(&self.output_dir).unwrap_or_else(|_| self.output_dir.clone())
        }
    }

    /// Id of the run: the name of its folder, if the folder was created for it.
    pub(super) fn run_id(&self, now: &DateTime<Local>) -> String {
        let name = self.dir.file_name().filter(|_| self.output_dir != self.dir);
        name.map_or_else(|| run_id(now), |name| name.to_string_lossy().into_owned())
    }
}

/// Folder name of a run that starts at `now`.
pub fn run_id(now: &DateTime<Local>) -> String {
    now.format("%Y%m%d-%H%M%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_path_round_trips() {
        for (dir, output_dir, stored) in [
            ("out", "out", "."),
            ("results/y", "results/y", "."),
            ("results/y", "results", ".."),
            ("y", "", ".."),
            ("./y", ".", ".."),
        ] {
            let place = OutputDirs { dir: dir.into(), output_dir: output_dir.into() };
            assert_eq!(place.relative_to_run(), Path::new(stored), "{dir}");
            assert_eq!(
                OutputDirs::from_journal(Path::new(dir), &place.relative_to_run()).output_dir,
                Path::new(output_dir),
                "{dir}"
            );
        }
        assert_eq!(OutputDirs::from_journal(Path::new("/a/y"), Path::new("/b")).output_dir, Path::new("/a/y"));
        for (dir, output_dir) in [(".", "./.."), ("..", "../.."), ("a/..", "a/../.."), ("x/", "")] {
            assert_eq!(
                OutputDirs::from_journal(Path::new(dir), Path::new("..")).output_dir,
                Path::new(output_dir),
                "{dir}"
            );
        }
    }

    #[test]
    fn runs_started_together_have_own_folders() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("deep/results");
        let start = || OutputDirs::create_below(&base).unwrap().dir;
        let threads: Vec<_> = (0..8)
            .map(|_| {
                std::thread::spawn({
                    let base = base.clone();
                    move || OutputDirs::create_below(&base).unwrap().dir
                })
            })
            .collect();
        let mut dirs: Vec<PathBuf> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        dirs.push(start());
        dirs.sort_unstable();
        dirs.dedup();
        assert_eq!((dirs.len(), fs::read_dir(&base).unwrap().count()), (9, 9));
    }
}
