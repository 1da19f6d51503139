//! The worker's side: orders on standard input, events on a pipe of their own.

use super::bench::{Context, Hear, Poisoned, work};
use super::position::Position;
use super::protocol::{Event, Keep, Order, Seen, Stage};
use calorimeter_sinks::Record;
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

/// What the run hears from this worker.
struct Voice {
    pipe: Pipe,
    position: Position,
}

impl Pipe {
    /// Takes standard output for itself; whatever a driver prints from now on goes to standard error.
    fn take_stdout() -> std::io::Result<Self> {
        let own = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)?;
        rustix::stdio::dup2_stdout(std::io::stderr())?;
        Ok(Self(Arc::new(Mutex::new(File::from(own)))))
    }

    /// Says something; a run that is no longer there ends the worker.
    fn say(&self, event: &Event) {
        let mut line = serde_json::to_vec(event).unwrap_or_default();
        line.push(b'\n');
        let mut pipe = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pipe.write_all(&line).is_err() {
            std::process::exit(1);
        }
    }
}

impl Hear for Voice {
    fn touch(&mut self, case: usize, stage: Stage) {
        self.position.set(case, stage);
    }

    fn record(&mut self, case: usize, record: Record) {
        self.pipe.say(&Event::Record { case, record: Box::new(record) });
    }

    fn seen(&mut self, case: usize, seen: Seen) {
        self.pipe.say(&Event::Seen { case, seen });
    }

    fn interrupted(&self) -> bool {
        false
    }
}

/// Call this first thing in `main`: a program that uses worker processes is started again as its own worker, and then
/// this does not return.
pub fn serve_if_worker() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == WORKER) {
        std::process::exit(match serve() {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("worker: {error}");
                1
            }
        });
    }
}

fn serve() -> std::io::Result<()> {
    let pipe = Pipe::take_stdout()?;
    let beating = pipe.clone();
    std::thread::spawn(move || {
        loop {
            beating.say(&Event::Beat);
            std::thread::sleep(BEAT);
        }
    });
    let mut context = Context::new(None, None);
    let mut voice = None;
    for line in std::io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            Order::Hello { position, keep: Keep { tuning, peaks, never_tune, look } } => {
                calorimeter_zoo::backends::configure(tuning.as_deref(), look);
                context.looks = look;
                if never_tune {
                    context.silence.forbid_tuning();
                }
                (context.tuning, context.kept_peaks) = (tuning, peaks);
                voice = Some(Voice { pipe: pipe.clone(), position: Position::take_over(&position)? });
            }
            Order::Measure(assignment) => {
                let voice = voice.as_mut().ok_or_else(|| std::io::Error::other("an order came before the greeting"))?;
                if let Err(Poisoned { case, reason }) = work(&assignment, &mut context, voice) {
                    pipe.say(&Event::Poisoned { case, reason });
                    // Destructors may wait for a device that no longer answers.
                    std::process::exit(1);
                }
                pipe.say(&Event::Done);
            }
        }
    }
    Ok(())
}
