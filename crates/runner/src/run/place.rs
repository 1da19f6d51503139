//! Where a run writes.

use crate::host::now;
use calorimeter_sinks::SinkError;
use chrono::{DateTime, Local};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Where a run writes.
#[derive(Debug, Clone)]
pub struct Place {
    /// The folder of the journal and of our derived files.
    pub dir: PathBuf,
    /// The folder below which scripts written for torchao look for its CSV.
    pub output_dir: PathBuf,
}

impl Place {
    /// Everything goes into one folder.
    pub fn all_in(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), output_dir: dir.to_owned() }
    }

    /// Makes a folder for a run that starts now. It is named by this second, and by a number from the second run on that
    /// starts in it.
    pub fn new_below(output_dir: &Path) -> Result<Self, SinkError> {
        let refused = |cause| SinkError::NotWritable { dir: output_dir.to_owned(), cause };
        fs::create_dir_all(output_dir).map_err(refused)?;
        let id = run_id(&now());
        let mut number = 1;
        loop {
            let name = if number == 1 { id.clone() } else { format!("{id}-{number}") };
            let dir = output_dir.join(name);
            // Whoever makes it has it: to look first would let two runs see the same free name.
            match fs::create_dir(&dir) {
                Ok(()) => return Ok(Self { dir, output_dir: output_dir.to_owned() }),
                Err(cause) if cause.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(cause) => return Err(refused(cause)),
            }
        }
    }

    /// Removes the folder of a run that could not start, which holds nothing.
    pub fn give_up(&self) {
        let _ = fs::remove_dir(&self.dir);
    }

    /// Where the run in a folder writes, from what its journal tells.
    pub fn of_run(dir: &Path, told: &Path) -> Self {
        let output_dir = match told.to_str() {
            Some(".") => dir.to_owned(),
            Some("..") if dir.file_name().is_some() => dir.parent().unwrap_or(Path::new("")).to_owned(),
            Some("..") => dir.join(".."),
            // A journal may come from somebody else, and does not lead elsewhere.
            _ => dir.to_owned(),
        };
        Self { dir: dir.to_owned(), output_dir }
    }

    /// The folder for torchao's CSV as it is seen from that of the run, so that it stays true where both are moved, or
    /// called by another name.
    pub(super) fn as_seen_from_run(&self) -> PathBuf {
        if self.output_dir == self.dir {
            ".".into()
        } else if self.dir.parent() == Some(&self.output_dir) {
            "..".into()
        } else {
            std::path::absolute(&self.output_dir).unwrap_or_else(|_| self.output_dir.clone())
        }
    }

    /// What the run is called: its folder, where that was made for it.
    pub(super) fn run_id(&self, now: &DateTime<Local>) -> String {
        let name = self.dir.file_name().filter(|_| self.output_dir != self.dir);
        name.map_or_else(|| run_id(now), |name| name.to_string_lossy().into_owned())
    }
}

/// The folder name of a run that starts now.
pub fn run_id(now: &DateTime<Local>) -> String {
    now.format("%Y%m%d-%H%M%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_journal_tells_leads_back_to_the_same_place() {
        for (dir, output_dir, told) in [
            ("out", "out", "."),
            ("results/y", "results/y", "."),
            ("results/y", "results", ".."),
            ("y", "", ".."),
            ("./y", ".", ".."),
        ] {
            let place = Place { dir: dir.into(), output_dir: output_dir.into() };
            assert_eq!(place.as_seen_from_run(), Path::new(told), "{dir}");
            assert_eq!(
                Place::of_run(Path::new(dir), &place.as_seen_from_run()).output_dir,
                Path::new(output_dir),
                "{dir}"
            );
        }
        assert_eq!(Place::of_run(Path::new("/a/y"), Path::new("/b")).output_dir, Path::new("/a/y"));
        for (dir, output_dir) in [(".", "./.."), ("..", "../.."), ("a/..", "a/../.."), ("x/", "")] {
            assert_eq!(Place::of_run(Path::new(dir), Path::new("..")).output_dir, Path::new(output_dir), "{dir}");
        }
    }

    #[test]
    fn runs_of_one_second_have_folders_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("deep/results");
        let start = || Place::new_below(&base).unwrap().dir;
        let threads: Vec<_> = (0..8)
            .map(|_| {
                std::thread::spawn({
                    let base = base.clone();
                    move || Place::new_below(&base).unwrap().dir
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
