//! What the terminal shows while a run goes on: records on standard output, progress on standard error.

mod bar;
mod left;
mod line;

pub use bar::Bar;
pub use line::Told;

use crate::clock_lock;
use crate::print::{print, width};
use crate::run::Prepared;
use crate::tell::tell;
use crate::worker::{Event, Listener, Stage};
use calorimeter_case::CaseId;
use calorimeter_sinks::Record;
use calorimeter_sinks::terminal::{Color, LiveTable};
use left::Left;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How records are printed as they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A table for people.
    Table,
    /// One JSON object a line.
    Jsonl,
}

/// Set by Ctrl-C; a second one ends the program at once.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Begins to listen for Ctrl-C.
pub fn listen_for_interrupts() {
    let heard = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            clock_lock::undo_all();
            std::process::exit(130);
        }
        tell!("\ninterrupted: finishing the journal; once more to quit at once");
    });
    if let Err(error) = heard {
        tell!("warning: cannot listen for Ctrl-C: {error}");
    }
}

/// Whether Ctrl-C was pressed.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// A terminal, or whatever the output goes to.
pub struct Terminal {
    format: Format,
    table: Option<LiveTable>,
    bar: Bar,
    /// Cases that have ended, of so many.
    done: u64,
    of: u64,
    /// Devices that are at work.
    devices: usize,
    left: Left,
    begun: Instant,
    /// When something was heard last.
    heard: Instant,
    doing: Option<Doing>,
    /// The first record that could not be printed ends the printing, not the run.
    printed: std::io::Result<()>,
}

/// What is being done to a case, and since when.
struct Doing {
    stage: Stage,
    since: Instant,
    case: CaseId,
    shown: Instant,
}

/// How long the line names a case: those that are measured take turns.
const NAMED: Duration = Duration::from_secs(1);

impl Terminal {
    /// Progress is shown only where standard error is a terminal.
    pub fn new(format: Format, color: Color) -> Self {
        Self { table: Some(LiveTable::new(color).as_wide_as(width())), ..Self::without_rows(format) }
    }

    /// The same for a table that is printed when all its records are there.
    pub fn without_rows(format: Format) -> Self {
        let now = Instant::now();
        Self {
            format,
            table: None,
            bar: Bar::new(),
            done: 0,
            of: 0,
            devices: 1,
            left: Left::default(),
            begun: now,
            heard: now,
            doing: None,
            printed: Ok(()),
        }
    }

    /// The same for a run of which it is predicted how long it takes.
    pub fn expecting(self, run: &Prepared) -> Self {
        // Nobody waits for what nobody sees.
        let left = if self.bar.is_seen() { Left::of(run.predicted()) } else { Left::default() };
        Self { left, ..self }
    }

    /// Takes the bar away, and answers whether all was printed.
    pub fn finish(self) -> std::io::Result<()> {
        self.bar.clear();
        self.printed
    }

    fn print(&mut self, text: &str) {
        if self.printed.is_ok() {
            self.printed = self.bar.aside(|| print(&format!("{text}\n")));
        }
    }
}

impl Listener for Terminal {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Begun { cases, already } => self.begin(cases, &already),
            Event::Touched { case, stage } => self.touched(case, stage),
            Event::AtWork(at) => self.devices = at.len(),
            Event::Ended(record) => self.ended(&record),
            Event::Saw { .. } => {}
        }
    }

    fn interrupted(&self) -> bool {
        interrupted()
    }
}

impl Terminal {
    fn begin(&mut self, cases: usize, already: &[CaseId]) {
        (self.done, self.of, self.begun) = (already.len() as u64, cases as u64, Instant::now());
        self.heard = self.begun;
        already.iter().for_each(|case| self.left.end(case, false));
        if !already.is_empty() {
            tell!("{} of {cases} cases are done already", already.len());
        }
    }

    fn touched(&mut self, case: CaseId, stage: Stage) {
        let now = Instant::now();
        // As the pool charges it: what passed belongs to the case that is touched now.
        self.left.spend(&case, stage, now.duration_since(self.heard).as_secs_f64());
        self.heard = now;
        match &mut self.doing {
            Some(doing) if doing.stage == stage => {
                if now.duration_since(doing.shown) >= NAMED {
                    (doing.case, doing.shown) = (case, now);
                }
            }
            doing => *doing = Some(Doing { stage, since: now, case, shown: now }),
        }
        self.draw();
    }

    fn draw(&mut self) {
        let doing = self.doing.as_ref();
        let doing = doing.map(|doing| {
            // They are the device's, whichever case came first.
            let case = if doing.stage == Stage::Peaks { "" } else { &*doing.case };
            (doing.stage, case, doing.since.elapsed().as_secs_f64())
        });
        let gone = self.begun.elapsed().as_secs_f64();
        self.bar.draw(|| Told {
            done: self.done,
            of: self.of,
            devices: self.devices,
            gone,
            left: self.left.seconds(),
            doing,
        });
    }

    fn ended(&mut self, record: &Record) {
        match self.format {
            Format::Table => {
                if let Some(text) = self.table.as_mut().and_then(|table| table.show(record)) {
                    self.print(&text);
                }
            }
            Format::Jsonl => {
                if let Ok(line) = serde_json::to_string(record) {
                    self.print(&line);
                }
            }
        }
        self.left.end(&record.case.id, record.is_ok());
        (self.done, self.heard) = (self.done + 1, Instant::now());
        self.draw();
    }
}
