//! Worker side of the protocol: commands on standard input, events on a separate pipe.

use super::context::Context;
use super::event::{Event, Listener};
use super::group::work;
use super::poison::Poisoned;
use super::position::Position;
use super::protocol::{Assignment, Kept, Message, Order};
use crate::log_line::log_line;
use calorimeter_case::CaseId;
use calorimeter_zoo::Machines;
use std::fs::File;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Command line argument that makes the program a worker.
pub const WORKER: &str = "worker";

/// Interval of a worker's heartbeat.
pub const BEAT: Duration = Duration::from_secs(1);

/// Pipe to the run.
#[derive(Clone)]
struct Pipe(Arc<Mutex<File>>);

/// Sends the events of an assignment to the run.
struct Voice<'a> {
    pipe: &'a Pipe,
    position: &'a Position,
    cases: Vec<CaseId>,
}

impl Pipe {
    /// Takes over standard output for messages; later output of drivers goes to standard error.
    fn take_stdout() -> std::io::Result<Self> {
        let own = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)?;
        rustix::stdio::dup2_stdout(std::io::stderr())?;
        Ok(Self(Arc::new(Mutex::new(File::from(own)))))
    }

    /// Sends a message; exits the worker if the run has ended.
    fn say(&self, message: &Message) {
        let mut line = serde_json::to_vec(message).unwrap_or_default();
        line.push(b'\n');
        let mut pipe = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pipe.write_all(&line).is_err() {
            end_group();
            std::process::exit(1);
        }
    }
}

/// Kills this process and the commands that it started, if it leads its own process group, as workers of a run do.
fn end_group() {
    let group = rustix::process::getpgrp();
    if group == rustix::process::getpid() {
        // If that fails, only this process exits.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

impl Listener for Voice<'_> {
    fn hear(&mut self, event: Event) {
        match event {
            // Stored in the shared file and polled by the run: a message per window would wake its threads during the
            // measurement.
            Event::Touched { case, stage } => {
                let Some(at) = self.cases.iter().position(|id| *id == case) else { return };
                // Without it, the run could not detect which case hangs.
                if let Err(error) = self.position.set(at, stage) {
                    log_line!("worker: cannot update the shared progress file for {case}: {error}");
                    std::process::exit(1);
                }
            }
            event => self.pipe.say(&Message::Event(event)),
        }
    }
}

/// Serves as a worker if the program was started as one; then it does not return. A program that uses worker processes
/// calls it first in `main`, because workers are the program itself, started again.
pub fn serve_if_worker() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == WORKER) {
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
    let pipe = Pipe::take_stdout()?;
    let beating = pipe.clone();
    std::thread::Builder::new().spawn(move || {
        loop {
            beating.say(&Message::Beat);
            std::thread::sleep(BEAT);
        }
    })?;
    let mut context = Context::new(None, None);
    let mut progress = None;
    for line in std::io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            Order::Hello { position, kept: Kept { tuning, level, peaks, never_tune, look } } => {
                calorimeter_zoo::backends::configure(tuning.as_deref(), level, look);
                context.machines = Machines::keeping(tuning.as_deref());
                (context.level, context.looks) = (level, look);
                if never_tune {
                    context.silence.forbid_tuning();
                }
                (context.tuning, context.kept_peaks) = (tuning, peaks);
                progress = Some(Position::take_over(position)?);
            }
            Order::Measure(assignment) => {
                let progress = progress
                    .as_ref()
                    .ok_or_else(|| std::io::Error::other("a command arrived before the configuration"))?;
                if let Err(Poisoned { case, reason }) =
                    work(&assignment, &mut context, &mut voice(&pipe, progress, &assignment))
                {
                    pipe.say(&Message::Poisoned { case, reason });
                    // Destructors may wait for a device that no longer responds.
                    std::process::exit(1);
                }
                pipe.say(&Message::Done);
            }
        }
    }
    Ok(())
}

fn voice<'a>(pipe: &'a Pipe, position: &'a Position, assignment: &Assignment) -> Voice<'a> {
    Voice { pipe, position, cases: assignment.cases.iter().map(|assigned| assigned.case.id.clone()).collect() }
}
