//! Worker side of the protocol: commands on standard input, events on a separate pipe.

use super::context::WorkerContext;
use super::event::{WorkerEvent, WorkerListener};
use super::group::run_assignment;
use super::poison::PoisonedProcess;
use super::position::ProgressFile;
use super::protocol::{Assignment, WorkerCaches, WorkerCommand, WorkerMessage};
use calorimeter_case::CaseId;
use calorimeter_external::RegisteredProgram;
use calorimeter_sinks::log_line;
use calorimeter_zoo::NativeDevices;
use std::fs::File;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Command line argument that makes the program a worker.
pub(super) const WORKER_ARGUMENT: &str = "worker";

/// Interval of a worker's heartbeat.
pub(super) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Pipe to the run.
#[derive(Clone)]
struct MessagePipe(Arc<Mutex<File>>);

/// Sends the events of an assignment to the run.
struct EventSender<'a> {
    pipe: &'a MessagePipe,
    position: &'a ProgressFile,
    cases: Vec<CaseId>,
}

impl MessagePipe {
    /// Takes over standard output for messages; later output of drivers goes to standard error.
    fn take_stdout() -> std::io::Result<Self> {
        let own = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)?;
        rustix::stdio::dup2_stdout(std::io::stderr())?;
        Ok(Self(Arc::new(Mutex::new(File::from(own)))))
    }

    /// Sends a message; exits the worker if the run has ended.
    fn send(&self, message: &WorkerMessage) {
        let mut line = serde_json::to_vec(message).unwrap_or_default();
        line.push(b'\n');
        let mut pipe = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pipe.write_all(&line).is_err() {
            kill_own_group();
            std::process::exit(1);
        }
    }
}

/// Kills this process and the commands that it started, if it leads its own process group, as workers of a run do.
fn kill_own_group() {
    let group = rustix::process::getpgrp();
    if group == rustix::process::getpid() {
        // If that fails, only this process exits.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

impl WorkerListener for EventSender<'_> {
    fn on_event(&mut self, event: WorkerEvent) {
        match event {
            // Stored in the shared file and polled by the run: a message per window would wake its threads during the
            // measurement.
            WorkerEvent::Progress { case, stage } => {
                let Some(at) = self.cases.iter().position(|id| *id == case) else { return };
                // Without it, the run could not detect which case hangs.
                if let Err(error) = self.position.set(at, stage) {
                    log_line!("worker: cannot update the shared progress file for {case}: {error}");
                    std::process::exit(1);
                }
            }
            event => self.pipe.send(&WorkerMessage::Event(event)),
        }
    }
}

/// Serves as a worker if the program was started as one; then it does not return. A program that uses worker processes
/// calls it first in `main`, because workers are the program itself, started again.
pub fn serve_if_worker() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == WORKER_ARGUMENT) {
        std::process::exit(match serve() {
            Ok(()) => 0,
            Err(error) => {
                log_line!("worker: {error}");
                1
            }
        });
    }
}

fn serve() -> std::io::Result<()> {
    let pipe = MessagePipe::take_stdout()?;
    let beating = pipe.clone();
    std::thread::Builder::new().spawn(move || {
        loop {
            beating.send(&WorkerMessage::Heartbeat);
            std::thread::sleep(HEARTBEAT_INTERVAL);
        }
    })?;
    let mut context = WorkerContext::new();
    let mut progress = None;
    for line in std::io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            WorkerCommand::Configure {
                position,
                caches: WorkerCaches { autotune_dir, tuning_level, peaks_dir, forbid_tuning },
                trace_kernels,
                external,
            } => {
                external.into_iter().try_for_each(RegisteredProgram::register).map_err(std::io::Error::other)?;
                calorimeter_zoo::backends::configure(autotune_dir.as_deref(), tuning_level, trace_kernels);
                context.machines = NativeDevices::with_cache_dir(autotune_dir.as_deref());
                context.tuning_level = tuning_level;
                if forbid_tuning {
                    context.silence.disable_tuning();
                }
                (context.autotune_dir, context.peaks_dir) = (autotune_dir, peaks_dir);
                progress = Some(ProgressFile::open_inherited(position)?);
            }
            WorkerCommand::Run(assignment) => {
                let progress = progress
                    .as_ref()
                    .ok_or_else(|| std::io::Error::other("a command arrived before the configuration"))?;
                if let Err(PoisonedProcess { case, cause, reason }) =
                    run_assignment(&assignment, &mut context, &mut event_sender(&pipe, progress, &assignment))
                {
                    pipe.send(&WorkerMessage::Poisoned { case, cause, reason });
                    // Destructors may wait for a device that no longer responds.
                    std::process::exit(1);
                }
                pipe.send(&WorkerMessage::Done);
            }
        }
    }
    Ok(())
}

fn event_sender<'a>(pipe: &'a MessagePipe, position: &'a ProgressFile, assignment: &Assignment) -> EventSender<'a> {
    EventSender { pipe, position, cases: assignment.cases.iter().map(|assigned| assigned.case.id.clone()).collect() }
}
