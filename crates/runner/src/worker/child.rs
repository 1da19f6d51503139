//! The worker's side: orders on standard input, events on a pipe of their own.

use super::context::Context;
use super::event::{Event, Listener};
use super::group::work;
use super::poison::Poisoned;
use super::position::Position;
use super::protocol::{Assignment, Kept, Message, Order};
use crate::tell::tell;
use calorimeter_case::CaseId;
use calorimeter_zoo::Machines;
use std::fs::File;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The argument that makes the program a worker.
pub const WORKER: &str = "worker";

/// How often a worker says that it is alive.
pub const BEAT: Duration = Duration::from_secs(1);

/// The pipe to the run.
#[derive(Clone)]
struct Pipe(Arc<Mutex<File>>);

/// What the run hears from this worker about an assignment.
struct Voice<'a> {
    pipe: &'a Pipe,
    position: &'a Position,
    cases: Vec<CaseId>,
}

impl Pipe {
    /// Takes standard output for itself; whatever a driver prints from now on goes to standard error.
    fn take_stdout() -> std::io::Result<Self> {
        let own = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)?;
        rustix::stdio::dup2_stdout(std::io::stderr())?;
        Ok(Self(Arc::new(Mutex::new(File::from(own)))))
    }

    /// Says something; a run that is no longer there ends the worker.
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

/// Ends this process with the commands that it has started, if it leads a group of its own, as a run's workers do.
fn end_group() {
    let group = rustix::process::getpgrp();
    if group == rustix::process::getpid() {
        // Should that be refused, it ends alone.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

impl Listener for Voice<'_> {
    fn hear(&mut self, event: Event) {
        match event {
            // The run reads it when it wants to know: a message for each window would wake it beside them.
            Event::Touched { case, stage } => {
                let Some(at) = self.cases.iter().position(|id| *id == case) else { return };
                // Without it nobody could end a case that hangs.
                if let Err(error) = self.position.set(at, stage) {
                    tell!("worker: it cannot be told that {case} is being touched: {error}");
                    std::process::exit(1);
                }
            }
            event => self.pipe.say(&Message::Event(event)),
        }
    }
}

/// Call this first thing in `main`: a program that uses worker processes is started again as its own worker, and then
/// this does not return.
pub fn serve_if_worker() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == WORKER) {
        std::process::exit(match serve() {
            Ok(()) => 0,
            Err(error) => {
                tell!("worker: {error}");
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
    let mut at = None;
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
                at = Some(Position::take_over(position)?);
            }
            Order::Measure(assignment) => {
                let at = at.as_ref().ok_or_else(|| std::io::Error::other("an order came before the greeting"))?;
                if let Err(Poisoned { case, reason }) =
                    work(&assignment, &mut context, &mut voice(&pipe, at, &assignment))
                {
                    pipe.say(&Message::Poisoned { case, reason });
                    // Destructors may wait for a device that no longer answers.
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
