//! `calorimeter run`.

use super::advice::stored;
use super::dry_run::dry_run;
use super::error::CliError;
use super::options::{ColorArguments, ColorChoice, RunArguments, RunFilesArguments};
use crate::Exit;
use crate::compare::{self, Baseline};
use crate::dialects::Source;
use crate::entries::{Overrides, TuningResults};
use crate::print::{print, width};
use crate::progress::{Format, Terminal, listen_for_interrupts};
use crate::run::{Outcome, Place, Prepared, Request, RunError};
use crate::log_line::log_line;
use crate::worker::{Kept, Launches, Subprocess};
use calorimeter_sinks::terminal::{Color, summary};
use calorimeter_sinks::{journal, not_in_this_build};
use calorimeter_timing::telemetry::LockedClock;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

pub fn run(arguments: RunFilesArguments) -> Result<Exit, CliError> {
    let RunFilesArguments { files, config, models, mut run } = arguments;
    run.overrides.models = models;
    let files: Vec<&PathBuf> = config.iter().chain(&files).collect();
    if files.is_empty() && run.resume.is_none() {
        return Err(CliError::Usage("no configuration file given; try configs/quickstart.yml".into()));
    }
    let request = Request { sources: read(&files)?, ..Request::default() };
    let Some(mut finished) = execute(request, run)? else { return Ok(Exit::Fine) };
    let exit = finished.sum_up();
    finished.end(exit)
}

/// Plans and runs a request, or resumes the run in a folder. Returns `None` after a dry run.
pub fn execute(asked: Request, run: RunArguments) -> Result<Option<Finished>, CliError> {
    let RunArguments { out, resume, save_baseline, dry_run: dry, format, strict, color: arguments, overrides } = run;
    let request = match &resume {
        Some(dir) if asked == Request::default() => continued(dir, overrides.into())?,
        _ => Request { overrides: overrides.into(), ..asked },
    };
    let prepared = request.prepare()?;
    if dry {
        dry_run(&prepared, format)?;
        return Ok(None);
    }
    // Fails before anything is measured if there is no folder for baselines.
    save_baseline.as_ref().map(Baseline::path).transpose()?;
    let color = color(&arguments);
    let mut terminal = Terminal::new(format, color).expecting(&prepared);
    let ended = match &resume {
        Some(dir) => go_on(&prepared, dir, &mut terminal),
        None => start(&prepared, out.as_deref(), &mut terminal),
    };
    let printed = terminal.finish();
    let (Place { dir, .. }, outcome) = ended?;
    if let Some(name) = &save_baseline {
        keep_baseline(name, &dir, &outcome)?;
    }
    Ok(Some(Finished { dir, outcome, printed, format, color, strict }))
}

/// Saves a complete run under a name. A partial run would hide missing cases, so it is not saved.
fn keep_baseline(name: &Baseline, dir: &Path, outcome: &Outcome) -> Result<(), CliError> {
    if outcome.interrupted || outcome.stopped.is_some() {
        log_line!("note: the run is incomplete, so it was not saved as a baseline");
        return Ok(());
    }
    log_line!("wrote {}", compare::keep(name, dir)?.display());
    Ok(())
}

/// Finished run with its display options.
pub struct Finished {
    pub dir: PathBuf,
    pub outcome: Outcome,
    /// Error of printing the records, if any.
    pub printed: io::Result<()>,
    pub format: Format,
    pub color: Color,
    pub strict: bool,
}

impl Finished {
    /// Prints the table of speed-ups and reports the written files.
    pub fn sum_up(&mut self) -> Exit {
        if self.format == Format::Table {
            let Outcome { records, suite, .. } = &self.outcome;
            self.print(&format!("\n{}\n", summary(records, suite, self.color, width())));
        }
        report(&self.outcome, self.strict)
    }

    /// Prints text after the records, unless an earlier print failed.
    pub fn print(&mut self, text: &str) {
        if self.printed.is_ok() {
            self.printed = print(text);
        }
    }

    /// Returns the exit code, or the printing error after everything else is done.
    pub fn end(self, exit: Exit) -> Result<Exit, CliError> {
        self.printed?;
        Ok(exit)
    }
}

/// Request of the run in a folder. Options that contradict the original ones are an error.
fn continued(dir: &Path, overrides: Overrides) -> Result<Request, RunError> {
    let request = Request::of_journal(dir)?;
    if let (Some(then), None) = (request.overrides.lock_clocks, overrides.lock_clocks) {
        let then = match then {
            LockedClock::Base => then.to_string(),
            LockedClock::Mhz(mhz) => mhz.to_string(),
        };
        return Err(RunError::Locked { then });
    }
    Ok(Request { overrides: overrides.or_as(&request.overrides), ..request })
}

/// Starts a prepared run. With `--out` all files go to that folder, otherwise to a new folder in `output_dir`.
pub fn start(prepared: &Prepared, out: Option<&Path>, terminal: &mut Terminal) -> Result<(Place, Outcome), RunError> {
    listen_for_interrupts();
    let place = match out {
        Some(out) => Place::all_in(out),
        None => Place::new_below(&output_dir(prepared))?,
    };
    let outcome = prepared.start(&place, &mut workers(prepared, &place), terminal);
    if outcome.is_err() && out.is_none() {
        place.give_up();
    }
    Ok((place, outcome?))
}

/// Resumes the run in a folder.
fn go_on(prepared: &Prepared, dir: &Path, terminal: &mut Terminal) -> Result<(Place, Outcome), RunError> {
    listen_for_interrupts();
    let place = place_of(prepared, dir)?;
    let outcome = prepared.resume(&place, &mut workers(prepared, &place), terminal)?;
    Ok((place, outcome))
}

/// Output folders that the run was started with.
fn place_of(prepared: &Prepared, dir: &Path) -> Result<Place, RunError> {
    if let Some(recorded) = journal::read_header(dir)?.output_dir {
        return Ok(Place::of_run(dir, &recorded));
    }
    // Early journals do not store `output_dir`. With `--out` it was the run folder itself, otherwise its parent.
    let output_dir = output_dir(prepared);
    let within = dir.parent() == Some(output_dir.as_path());
    Ok(Place { dir: dir.to_owned(), output_dir: if within { output_dir } else { dir.to_owned() } })
}

fn output_dir(prepared: &Prepared) -> PathBuf {
    prepared.output_dir.clone().unwrap_or_else(|| "results".into())
}

pub fn read(files: &[&PathBuf]) -> Result<Vec<Source>, RunError> {
    files.iter().map(|file| Ok(Source::read(file)?)).collect()
}

/// Reports notes, written files and errors on standard error, and returns the exit code.
pub fn report(outcome: &Outcome, strict: bool) -> Exit {
    for note in &outcome.notes {
        log_line!("note: {note}");
    }
    for path in &outcome.paths {
        log_line!("wrote {}", path.display());
    }
    for file in not_in_this_build() {
        log_line!("note: {file} was not written: this program was built without the feature `tables`");
    }
    for error in &outcome.errors {
        log_line!("error: {}", stored(error));
    }
    if let Some(error) = &outcome.stopped {
        log_line!("error: {error}; finished cases are saved, continue with --resume");
        return Exit::Usage;
    }
    if outcome.interrupted {
        return Exit::Interrupted;
    }
    if outcome.errors.is_empty() { Exit::of(&outcome.records, strict) } else { Exit::Usage }
}

pub fn color(arguments: &ColorArguments) -> Color {
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
fn workers(prepared: &Prepared, place: &Place) -> Launches {
    Launches::new(Subprocess::new(keep(prepared, place)), prepared.launches())
}

/// Persistent folders of the workers. Results of `fresh` tuning are stored in the run folder.
fn keep(prepared: &Prepared, place: &Place) -> Kept {
    let autotune = prepared.autotune();
    let tuning = match autotune.results {
        TuningResults::Fresh => Some(place.dir.join(autotune.folder())),
        TuningResults::Cached | TuningResults::Off => crate::cache::folder(autotune.folder()),
    };
    Kept {
        tuning,
        level: autotune.level,
        peaks: crate::cache::folder("peaks"),
        never_tune: autotune.results == TuningResults::Off,
        look: false,
    }
}
