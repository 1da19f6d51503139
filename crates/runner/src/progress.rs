//! What the terminal shows while a run goes on: records on standard output, progress on standard error.

use crate::clock_lock;
use crate::print::{print, width};
use crate::shown::shown;
use crate::tell::tell;
use crate::worker::{Event, Listener, Stage};
use calorimeter_case::CaseId;
use calorimeter_sinks::Record;
use calorimeter_sinks::terminal::{Colour, LiveTable};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
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
    bar: ProgressBar,
    drawn: Instant,
    /// Whether several devices work at the same time.
    several: bool,
    /// The first record that could not be printed ends the printing, not the run.
    printed: std::io::Result<()>,
}

/// How often the bar's text changes.
const REDRAW: Duration = Duration::from_millis(100);

impl Terminal {
    /// Progress is shown only where standard error is a terminal.
    pub fn new(format: Format, colour: Colour) -> Self {
        Self { table: Some(LiveTable::new(colour).as_wide_as(width())), ..Self::without_rows(format) }
    }

    /// The same for a table that is printed when all its records are there.
    pub fn without_rows(format: Format) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        Self { format, table: None, bar, drawn: Instant::now(), several: false, printed: Ok(()) }
    }

    /// Takes the bar away, and answers whether all was printed.
    pub fn finish(self) -> std::io::Result<()> {
        self.bar.finish_and_clear();
        self.printed
    }

    fn print(&mut self, text: &str) {
        if self.printed.is_ok() {
            self.printed = self.bar.suspend(|| print(&format!("{text}\n")));
        }
    }
}

impl Listener for Terminal {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Begun { cases, already } => self.begin(cases, already),
            Event::Touched { case, stage } => self.touched(&case, stage),
            Event::AtWork(at) => self.at_work(&at),
            Event::Ended(record) => self.ended(&record),
            Event::Saw { .. } => {}
        }
    }

    fn interrupted(&self) -> bool {
        interrupted()
    }
}

impl Terminal {
    fn begin(&mut self, cases: usize, already: usize) {
        let template = "{bar:30} {pos}/{len} cases, {elapsed_precise} gone, about {eta} left  {wide_msg}";
        self.bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar.set_length(cases as u64);
        self.bar.set_position(already as u64);
        self.bar.reset_eta();
        if already > 0 {
            tell!("{already} of {cases} cases are done already");
        }
    }

    fn touched(&mut self, id: &str, stage: Stage) {
        if self.several {
            return;
        }
        let tuning = stage == Stage::Tune || stage == Stage::Open;
        if tuning || self.drawn.elapsed() >= REDRAW {
            self.drawn = Instant::now();
            self.bar.set_message(shown(&format!("{stage} {id}")).into_owned());
        }
    }

    /// What each of several devices is at.
    fn at_work(&mut self, at: &[(CaseId, Stage)]) {
        self.several = at.len() > 1;
        if self.several && self.drawn.elapsed() >= REDRAW {
            self.drawn = Instant::now();
            let each: Vec<String> = at.iter().map(|(case, stage)| format!("{stage} {case}")).collect();
            self.bar.set_message(shown(&each.join(" | ")).into_owned());
        }
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
        self.bar.inc(1);
    }
}
