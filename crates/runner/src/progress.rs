//! Terminal output during a run: records on standard output, progress on standard error.

mod bar;
mod line;
mod remaining_time;
mod stage_times;

pub(crate) use bar::Bar;
pub(crate) use line::ProgressState;

use crate::plan::Prediction;
use crate::print::{print_table, width};
use crate::rough_time::{PLAN_ASSUMPTION, announce_duration};
use crate::run::{PreparedRun, RunEvent, RunListener};
use crate::worker::Stage;
use calorimeter_case::CaseId;
use calorimeter_probe::clock_lock;
use calorimeter_sinks::terminal::{Color, LiveTable};
use calorimeter_sinks::{Record, log_line};
use remaining_time::RemainingTime;
use stage_times::StageTimes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Output format of records during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RecordFormat {
    /// Human-readable table.
    Table,
    /// JSON object per line.
    Jsonl,
}

/// Set by the first Ctrl-C; a second one exits immediately.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Installs the Ctrl-C handler.
pub(crate) fn install_interrupt_handler() {
    let installed = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::SeqCst) {
            clock_lock::release_all();
            std::process::exit(130);
        }
        log_line!("\ninterrupted: finishing the journal; press Ctrl-C again to quit immediately");
    });
    if let Err(error) = installed {
        log_line!("warning: cannot install the Ctrl-C handler: {error}");
    }
}

/// True after Ctrl-C.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Listener that prints records and progress.
pub(crate) struct Terminal {
    format: RecordFormat,
    table: Option<LiveTable>,
    bar: Bar,
    /// Number of finished cases, and of all cases.
    done: u64,
    total: u64,
    /// Number of busy devices.
    devices: usize,
    remaining: RemainingTime,
    /// Predicted duration, unless the plan is too long.
    predicted: Option<Prediction>,
    stage_times: Option<StageTimes>,
    started: Instant,
    /// Time of the last event.
    last_event: Instant,
    current: Option<CurrentStage>,
    /// Result of printing. After the first error printing stops, but the run continues.
    print_result: std::io::Result<()>,
}

/// Current stage, its start, and the displayed case.
struct CurrentStage {
    stage: Stage,
    started: Instant,
    case: CaseId,
    displayed: Instant,
}

/// Minimum time for which a case id is displayed, because interleaved cases alternate quickly.
const CASE_NAME_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of cases whose duration is announced: predicting a million cases takes seconds.
const MAX_ANNOUNCED_CASES: usize = 10_000;

impl Terminal {
    /// Creates a listener with a table. Progress is shown only if standard error is a terminal.
    pub(crate) fn new(format: RecordFormat, color: Color) -> Self {
        Self { table: Some(LiveTable::new(color).with_width(width())), ..Self::without_table(format) }
    }

    /// Creates a listener without a live table; the caller prints the table at the end.
    pub(crate) fn without_table(format: RecordFormat) -> Self {
        let now = Instant::now();
        Self {
            format,
            table: None,
            bar: Bar::new(),
            done: 0,
            total: 0,
            devices: 1,
            remaining: RemainingTime::default(),
            predicted: None,
            stage_times: None,
            started: now,
            last_event: now,
            current: None,
            print_result: Ok(()),
        }
    }

    /// Adds the predicted duration of a run, for the announcement and for the estimate of the remaining time.
    pub(crate) fn with_predictions(self, run: &PreparedRun) -> Self {
        // The estimate is skipped if the progress line is hidden.
        let remaining =
            if self.bar.is_visible() { RemainingTime::new(run.predictions()) } else { RemainingTime::default() };
        let is_short = run.plan().len() <= MAX_ANNOUNCED_CASES;
        let predicted = is_short.then(|| run.predictions().map(|(_, _, predicted)| predicted).sum());
        Self { remaining, predicted, ..self }
    }

    /// Also sums the wall time by stage, from the time at which the command started.
    pub(crate) fn with_stage_times(self, started: Instant) -> Self {
        Self { stage_times: Some(StageTimes::new(started)), ..self }
    }

    /// Returns the table of the wall time by stage, if it was requested.
    pub(crate) fn take_stage_table(&mut self) -> Option<String> {
        Some(self.stage_times.take()?.table(Instant::now()))
    }

    /// Prints the cases of an incomplete group, removes the progress line and returns the result of printing.
    pub(crate) fn finish(mut self) -> std::io::Result<()> {
        self.print_group();
        self.bar.clear();
        self.print_result
    }

    fn print(&mut self, text: &str) {
        if self.print_result.is_ok() {
            self.print_result = self.bar.suspend(|| print_table(&format!("{text}\n")));
        }
    }
}

impl RunListener for Terminal {
    fn on_event(&mut self, event: RunEvent) {
        if let Some(times) = &mut self.stage_times {
            times.on_event(&event, Instant::now());
        }
        match event {
            RunEvent::RunStarted { cases, finished: already } => self.on_start(cases, &already),
            RunEvent::Progress { case, stage } => self.on_progress(case, stage),
            RunEvent::ActiveStages(at) => self.devices = at.len(),
            RunEvent::CaseFinished(record) => self.on_case_finished(&record),
            RunEvent::GroupFinished => self.print_group(),
        }
    }

    fn interrupted(&self) -> bool {
        interrupted()
    }
}

impl Terminal {
    fn on_start(&mut self, cases: usize, already: &[CaseId]) {
        (self.done, self.total, self.started) = (already.len() as u64, cases as u64, Instant::now());
        self.last_event = self.started;
        already.iter().for_each(|case| self.remaining.finish_case(case, false));
        if !already.is_empty() {
            log_line!("{} of {cases} cases are already finished", already.len());
        } else if let Some(predicted) = self.predicted {
            announce_duration(predicted.min_total(), predicted.max_total(), PLAN_ASSUMPTION);
        }
    }

    fn on_progress(&mut self, case: CaseId, stage: Stage) {
        let now = Instant::now();
        // Like the pool: the elapsed time is charged to the case of this event.
        self.remaining.add_spent(&case, stage, now.duration_since(self.last_event).as_secs_f64());
        self.last_event = now;
        match &mut self.current {
            Some(doing) if doing.stage == stage => {
                if now.duration_since(doing.displayed) >= CASE_NAME_INTERVAL {
                    (doing.case, doing.displayed) = (case, now);
                }
            }
            doing => *doing = Some(CurrentStage { stage, started: now, case, displayed: now }),
        }
        self.draw();
    }

    fn draw(&mut self) {
        let doing = self.current.as_ref();
        let doing = doing.map(|doing| {
            // Peaks belong to the device, not to the case that triggered them.
            let case = if doing.stage == Stage::Peaks { "" } else { &*doing.case };
            (doing.stage, case, doing.started.elapsed().as_secs_f64())
        });
        let elapsed = self.started.elapsed().as_secs_f64();
        self.bar.draw(|| ProgressState {
            done: self.done,
            total: self.total,
            devices: self.devices,
            elapsed,
            remaining: self.remaining.seconds(),
            current: doing,
        });
    }

    fn print_group(&mut self) {
        let table = self.table.as_mut().filter(|_| self.format == RecordFormat::Table);
        if let Some(text) = table.and_then(LiveTable::finish_group) {
            self.print(&text);
        }
    }

    fn on_case_finished(&mut self, record: &Record) {
        match self.format {
            RecordFormat::Table => {
                if let Some(text) = self.table.as_mut().and_then(|table| table.add(record)) {
                    self.print(&text);
                }
            }
            RecordFormat::Jsonl => {
                if let Ok(line) = serde_json::to_string(record) {
                    self.print(&line);
                }
            }
        }
        self.remaining.finish_case(&record.case.id, record.is_ok());
        (self.done, self.last_event) = (self.done + 1, Instant::now());
        self.draw();
    }
}
