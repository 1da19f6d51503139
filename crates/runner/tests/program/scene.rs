//! Program in a temporary folder, and its results.

#[path = "../out_of_tree/scene.rs"]
mod folder;

use calorimeter_sinks::journal::{self, JournalContents};
use calorimeter_sinks::{Record, Status};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

pub(crate) use folder::{ProgramOutput, Scene, find_record};

/// Fixed number of windows, sufficient for an interval.
pub(crate) const TIMING: &str =
    "timing: {min_time: 1ms, max_time: 60s, warm_up: 0s, min_windows: 10, max_windows: 10, window: 20us}";

/// Time limit of a program.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Our tables of a run; Parquet requires the feature `tables`.
pub(crate) const TABLES: &[&str] =
    if cfg!(feature = "tables") { &["results.csv", "results.parquet"] } else { &["results.csv"] };

impl Scene {
    /// Command with space-separated arguments.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_calorimeter"));
        command.args(arguments.split_whitespace());
        self.prepare(&mut command);
        let config = fs::read_to_string(self.path("c.yml")).unwrap_or_default();
        if ["device: cpu", "device: vulkan"].iter().any(|device| config.contains(device)) {
            self.share_peaks();
        }
        command
    }

    /// Command started by a shell line that sets resource limits.
    pub(crate) fn limited_command(&self, limit: &str, arguments: &str) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{limit} && exec \"$@\"")).arg("sh").arg(env!("CARGO_BIN_EXE_calorimeter"));
        command.args(arguments.split_whitespace());
        self.prepare(&mut command);
        command
    }

    /// Shares measured peaks between tests.
    fn share_peaks(&self) {
        let (kept, ours) = (Path::new(env!("CARGO_TARGET_TMPDIR")).join("peaks"), self.path("cache/calorimeter"));
        fs::create_dir_all(&kept).unwrap();
        fs::create_dir_all(&ours).unwrap();
        if !ours.join("peaks").exists() {
            std::os::unix::fs::symlink(kept, ours.join("peaks")).unwrap();
        }
    }

    pub(crate) fn run(&self, arguments: &str) -> ProgramOutput {
        ProgramOutput::from_command(&mut self.command(arguments))
    }

    pub(crate) fn start(&self, arguments: &str) -> RunningProgram<'_> {
        self.start_command(&mut self.command(arguments))
    }

    pub(crate) fn start_command(&self, command: &mut Command) -> RunningProgram<'_> {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        RunningProgram { scene: self, child }
    }

    pub(crate) fn journal(&self, dir: &str) -> JournalContents {
        journal::read(&self.path(dir)).unwrap()
    }

    /// Number of records in a journal; 0 if it does not exist.
    pub(crate) fn records_so_far(&self, dir: &str) -> usize {
        let text = fs::read_to_string(self.path(dir).join("journal.jsonl")).unwrap_or_default();
        text.lines().filter(|line| line.starts_with("{\"record\"")).count()
    }

    /// Derived files: our tables, then torchao's CSV.
    pub(crate) fn derived_files(&self, dir: &str) -> Vec<Vec<u8>> {
        let torchao: Vec<PathBuf> =
            fs::read_dir(self.path(dir).join("inference")).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(torchao.len(), 1, "{torchao:?}");
        let ours = TABLES.iter().map(|name| self.path(dir).join(name));
        ours.chain([torchao[0].clone()]).map(|path| fs::read(path).unwrap()).collect()
    }
}

/// Running program.
pub(crate) struct RunningProgram<'a> {
    scene: &'a Scene,
    pub child: Child,
}

impl RunningProgram<'_> {
    /// Waits until the journal of a folder contains `records` records.
    pub(crate) fn wait_for_records(&mut self, dir: &str, records: usize) {
        let journal = self.scene.path(dir).join("journal.jsonl");
        wait_until("records in the journal", || {
            assert!(self.child.try_wait().unwrap().is_none(), "the run ended before it had {records} records");
            journal.exists() && self.scene.records_so_far(dir) >= records
        });
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn wait(self) -> ProgramOutput {
        self.child.wait_with_output().unwrap().into()
    }
}

/// Polls a condition, with a generous time limit.
pub(crate) fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < Duration::from_secs(120), "timeout while waiting for {what}");
        std::thread::sleep(Duration::from_millis(3));
    }
}

impl ProgramOutput {
    /// Runs a command with captured output and a time limit.
    pub(crate) fn with_timeout(command: &mut Command) -> Self {
        Self::wait_with_timeout(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// Waits for a program; kills it and panics after the time limit.
    pub(crate) fn wait_with_timeout(child: Child) -> Self {
        let id = Pid::from_child(&child);
        let (done, ended) = channel::<()>();
        let watcher = std::thread::spawn(move || {
            let hangs = ended.recv_timeout(TIMEOUT) == Err(RecvTimeoutError::Timeout);
            hangs && kill_process(id, Signal::KILL).is_ok()
        });
        let output = child.wait_with_output().unwrap();
        drop(done);
        assert!(!watcher.join().unwrap(), "program hangs: {output:?}");
        output.into()
    }
}

/// Records that are not ok.
pub(crate) fn not_ok(records: &[Record]) -> Vec<&Record> {
    records.iter().filter(|record| record.outcome.status != Status::Ok).collect()
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}
