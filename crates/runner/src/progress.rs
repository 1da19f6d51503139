//! Terminal output during a run: records on standard output, progress on standard error.

mod bar;
mod left;
mod line;

pub use bar::Bar;
pub use line::Told;

use crate::clock_lock;
use crate::log_line::log_line;
use crate::print::{print, width};
use crate::run::Prepared;
use crate::worker::{Event, Listener, Stage};
use calorimeter_case::CaseId;
use calorimeter_sinks::Record;
use calorimeter_sinks::terminal::{Color, LiveTable};
use left::Left;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Output format of records during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Human-readable table.
    Table,
    /// JSON object per line.
    Jsonl,
}

/// Set by the first Ctrl-C; a second one exits immediately.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Installs the Ctrl-C handler.
pub fn listen_for_interrupts() {
    let installed = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            clock_lock::undo_all();
            std::process::exit(130);
        }
        log_line!("\ninterrupted: finishing the journal; press Ctrl-C again to quit immediately");
    });
    if let Err(error) = installed {
        log_line!("warning: cannot install the Ctrl-C handler: {error}");
    }
}

/// True after Ctrl-C.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Listener that prints records and progress.
pub struct Terminal {
    format: Format,
    table: Option<LiveTable>,
    bar: Bar,
    /// Number of finished cases, and of all cases.
    done: u64,
    of: u64,
    /// Number of busy devices.
    devices: usize,
    left: Left,
    begun: Instant,
    /// Time of the last event.
    heard: Instant,
    doing: Option<Doing>,
    /// Result of printing. After the first error printing stops, but the run continues.
    printed: std::io::Result<()>,
}

/// Current stage, its start, and the displayed case.
struct Doing {
    stage: Stage,
    since: Instant,
    case: CaseId,
    shown: Instant,
}

/// Minimum time for which a case id is displayed, because interleaved cases alternate quickly.
const NAMED: Duration = Duration::from_secs(1);

impl Terminal {
    /// Creates a listener with a table. Progress is shown only if standard error is a terminal.
    pub fn new(format: Format, color: Color) -> Self {
        Self { table: Some(LiveTable::new(color).as_wide_as(width())), ..Self::without_rows(format) }
    }

    /// Creates a listener without a live table; the caller prints the table at the end.
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

    /// Adds the predicted duration of a run for the estimate of the remaining time.
    pub fn expecting(self, run: &Prepared) -> Self {
        // The estimate is skipped if the progress line is hidden.
        let remaining = if self.bar.is_seen() { Left::of(run.predicted()) } else { Left::default() };
        Self { left: remaining, ..self }
    }

    /// Removes the progress line and returns the result of printing.
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
            log_line!("{} of {cases} cases are already finished", already.len());
        }
    }

    fn touched(&mut self, case: CaseId, stage: Stage) {
        let now = Instant::now();
        // Like the pool: the elapsed time is charged to the case of this event.
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
            // Peaks belong to the device, not to the case that triggered them.
            let case = if doing.stage == Stage::Peaks { "" } else { &*doing.case };
            (doing.stage, case, doing.since.elapsed().as_secs_f64())
        });
        let elapsed = self.begun.elapsed().as_secs_f64();
        self.bar.draw(|| Told {
            done: self.done,
            of: self.of,
            devices: self.devices,
            gone: elapsed,
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
