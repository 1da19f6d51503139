//! `calorimeter run`.

use super::advice::sink_error_line;
use super::dry_run::dry_run;
use super::error::CliError;
use super::options::{ColorArguments, ColorChoice, RunArguments, RunFilesArguments};
use crate::Exit;
use crate::dialects::ConfigSource;
use crate::entries::{Overrides, TuningCacheMode};
use crate::print::{print_table, width};
use crate::progress::{RecordFormat, Terminal, install_interrupt_handler};
use crate::run::{OutputDirs, PreparedRun, Request, RunError, RunOutcome};
use crate::worker::{RepeatedExecutor, Subprocess, WorkerCaches};
use calorimeter_compare::{self as compare, SavedBaseline};
use calorimeter_sinks::terminal::{Color, summary};
use calorimeter_sinks::{journal, log_line};
use calorimeter_timing::telemetry::LockedClock;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(super) fn run(arguments: RunFilesArguments) -> Result<Exit, CliError> {
    let RunFilesArguments { files, config, models, mut run } = arguments;
    run.overrides.models = models;
    let files: Vec<&PathBuf> = config.iter().chain(&files).collect();
    if files.is_empty() && run.resume.is_none() {
        let why = "no configuration file given; try `calorimeter run quickstart`, or write one with `calorimeter init`";
        return Err(CliError::Usage(why.into()));
    }
    let request = Request { sources: read_sources(&files)?, ..Request::default() };
    let Some(mut finished) = execute(request, run)? else { return Ok(Exit::Success) };
    let exit = finished.print_summary();
    finished.finish(exit)
}

/// Plans and runs a request, or resumes the run in a folder. Returns `None` after a dry run.
pub(super) fn execute(asked: Request, run: RunArguments) -> Result<Option<FinishedRun>, CliError> {
    let started = Instant::now();
    let RunArguments { out, resume, save_baseline, dry_run: dry, format, strict, timings, color: arguments, overrides } =
        run;
    let request = match &resume {
        Some(dir) if asked == Request::default() => resumed_request(dir, overrides.into())?,
        _ => Request { overrides: overrides.into(), ..asked },
    };
    let prepared = request.prepare()?;
    if dry {
        dry_run(&prepared, format)?;
        return Ok(None);
    }
    // Fails before anything is measured if there is no folder for baselines.
    save_baseline.as_ref().map(SavedBaseline::path).transpose()?;
    let color = color(&arguments);
    let mut terminal = Terminal::new(format, color).with_predictions(&prepared);
    if timings {
        terminal = terminal.with_stage_times(started);
    }
    let ended = match &resume {
        Some(dir) => resume_run(&prepared, dir, &mut terminal),
        None => start_run(&prepared, out.as_deref(), &mut terminal),
    };
    let stage_table = terminal.take_stage_table();
    let printed = terminal.finish();
    let (OutputDirs { dir, .. }, outcome) = ended?;
    if let Some(name) = &save_baseline {
        store_baseline(name, &dir, &outcome)?;
    }
    Ok(Some(FinishedRun { dir, outcome, printed, stage_table, format, color, strict }))
}

/// Saves a complete run under a name. A partial run would hide missing cases, so it is not saved.
fn store_baseline(name: &SavedBaseline, dir: &Path, outcome: &RunOutcome) -> Result<(), CliError> {
    if outcome.interrupted || outcome.stopped.is_some() {
        log_line!("note: the run is incomplete, so it was not saved as a baseline");
        return Ok(());
    }
    log_line!("wrote {}", compare::save(name, dir)?.display());
    Ok(())
}

/// Finished run with its display options.
pub(super) struct FinishedRun {
    pub dir: PathBuf,
    pub outcome: RunOutcome,
    /// Error of printing the records, if any.
    pub printed: io::Result<()>,
    /// Table of `--timings`.
    pub stage_table: Option<String>,
    pub format: RecordFormat,
    pub color: Color,
    pub strict: bool,
}

impl FinishedRun {
    /// Prints the table of speed-ups and reports the written files.
    pub(super) fn print_summary(&mut self) -> Exit {
        if self.format == RecordFormat::Table {
            let RunOutcome { records, suite, .. } = &self.outcome;
            self.print(&format!("\n{}\n", summary(records, suite, self.color, width())));
        }
        report_outcome(&self.outcome, self.strict)
    }

    /// Command that shows the results, or continues an interrupted run.
    fn next_command(&self) -> String {
        let incomplete = self.outcome.interrupted || self.outcome.stopped.is_some();
        let command = if incomplete { "run --resume" } else { "report" };
        format!("Next: calorimeter {command} {}", self.dir.display())
    }

    /// Prints a table after the records, unless an earlier print failed.
    pub(super) fn print(&mut self, text: &str) {
        if self.printed.is_ok() {
            self.printed = print_table(text);
        }
    }

    /// Returns the exit code, or the printing error after everything else is done.
    pub(super) fn finish(self, exit: Exit) -> Result<Exit, CliError> {
        if let Some(table) = &self.stage_table {
            log_line!("\n{table}");
        }
        if self.format == RecordFormat::Table && !self.outcome.records.is_empty() {
            log_line!("{}", self.next_command());
        }
        self.printed?;
        Ok(exit)
    }
}

/// Request of the run in a folder. Options that contradict the original ones are an error.
fn resumed_request(dir: &Path, overrides: Overrides) -> Result<Request, RunError> {
    let request = Request::from_journal(dir)?;
    if let (Some(then), None) = (request.overrides.lock_clocks, overrides.lock_clocks) {
        let then = match then {
            LockedClock::Base => then.to_string(),
            LockedClock::Mhz(mhz) => mhz.to_string(),
        };
        return Err(RunError::MissingLockClocks { then });
    }
    Ok(Request { overrides: overrides.or_previous(&request.overrides), ..request })
}

/// Starts a prepared run. With `--out` all files go to that folder, otherwise to a new folder in `output_dir`.
pub(super) fn start_run(
    prepared: &PreparedRun,
    out: Option<&Path>,
    terminal: &mut Terminal,
) -> Result<(OutputDirs, RunOutcome), RunError> {
    install_interrupt_handler();
    let place = match out {
        Some(out) => OutputDirs::single(out),
        None => OutputDirs::create_below(&output_dir(prepared))?,
    };
    let outcome = prepared.start(&place, &mut worker_processes(prepared, &place), terminal);
    if outcome.is_err() && out.is_none() {
        place.remove_empty();
    }
    Ok((place, outcome?))
}

/// Resumes the run in a folder.
fn resume_run(
    prepared: &PreparedRun,
    dir: &Path,
    terminal: &mut Terminal,
) -> Result<(OutputDirs, RunOutcome), RunError> {
    install_interrupt_handler();
    let place = original_output_dirs(prepared, dir)?;
    let outcome = prepared.resume(&place, &mut worker_processes(prepared, &place), terminal)?;
    Ok((place, outcome))
}

/// Output folders that the run was started with.
fn original_output_dirs(prepared: &PreparedRun, dir: &Path) -> Result<OutputDirs, RunError> {
    if let Some(recorded) = journal::read_header(dir)?.output_dir {
        return Ok(OutputDirs::from_journal(dir, &recorded));
    }
    // Early journals do not store `output_dir`. With `--out` it was the run folder itself, otherwise its parent.
    let output_dir = output_dir(prepared);
    let within = dir.parent() == Some(output_dir.as_path());
    Ok(OutputDirs { dir: dir.to_owned(), output_dir: if within { output_dir } else { dir.to_owned() } })
}

fn output_dir(prepared: &PreparedRun) -> PathBuf {
    prepared.output_dir.clone().unwrap_or_else(|| "results".into())
}

/// Reads configuration files. The name `quickstart` selects the bundled file, unless a file has this name.
pub(super) fn read_sources(files: &[&PathBuf]) -> Result<Vec<ConfigSource>, RunError> {
    let read = |file: &&PathBuf| {
        if file.as_os_str() == QUICKSTART.0 && (file.is_dir() || !file.exists()) {
            return Ok(ConfigSource { path: (*file).clone(), text: QUICKSTART.1.to_owned() });
        }
        Ok(ConfigSource::read(file)?)
    };
    files.iter().map(read).collect()
}

/// Name and text of the bundled configuration file.
const QUICKSTART: (&str, &str) = ("quickstart", include_str!("../../quickstart.yml"));

/// Reports notes, written files and errors on standard error, and returns the exit code.
pub(super) fn report_outcome(outcome: &RunOutcome, strict: bool) -> Exit {
    for note in &outcome.notes {
        log_line!("note: {note}");
    }
    for path in &outcome.paths {
        log_line!("wrote {}", path.display());
    }
    for error in &outcome.errors {
        log_line!("error: {}", sink_error_line(error));
    }
    if let Some(error) = &outcome.stopped {
        log_line!("error: {error}; finished cases are saved, continue with --resume");
        return Exit::Usage;
    }
    if outcome.interrupted {
        return Exit::Interrupted;
    }
    if outcome.errors.is_empty() { Exit::from_records(&outcome.records, strict) } else { Exit::Usage }
}

pub(super) fn color(arguments: &ColorArguments) -> Color {
    let wanted = match arguments.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let off = ["NO_COLOR"].iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
            let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
            let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| value != "0");
            !off && (forced || (std::io::stdout().is_terminal() && !dumb))
        }
    };
    if wanted { Color::Always } else { Color::Never }
}

/// Worker processes; each case is measured in the requested number of launches.
fn worker_processes(prepared: &PreparedRun, place: &OutputDirs) -> RepeatedExecutor {
    RepeatedExecutor::new(Subprocess::new(worker_caches(prepared, place)), prepared.launches())
}

/// Persistent folders of the workers. Results of `fresh` tuning are stored in the run folder.
fn worker_caches(prepared: &PreparedRun, place: &OutputDirs) -> WorkerCaches {
    let autotune = prepared.autotune();
    let tuning = match autotune.cache {
        TuningCacheMode::Fresh => Some(place.dir.join(autotune.folder())),
        TuningCacheMode::Cached | TuningCacheMode::Off => calorimeter_sinks::cache::cache_dir(autotune.folder()),
    };
    WorkerCaches {
        autotune_dir: tuning,
        tuning_level: autotune.level,
        peaks_dir: calorimeter_sinks::cache::cache_dir("peaks"),
        forbid_tuning: autotune.cache == TuningCacheMode::Off,
    }
}
