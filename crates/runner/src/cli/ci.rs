//! `calorimeter ci`: a run whose result is the dashboard's JSON.

use super::error::CliError;
use super::options::CiArguments;
use super::run::{read, report, start};
use crate::Exit;
use crate::devices;
use crate::progress::{Format, Terminal};
use crate::run::Request;
use crate::tell::tell;
use calorimeter_sinks::dashboard;
use calorimeter_sinks::journal::check_writable;
use calorimeter_sinks::terminal::Colour;
use std::path::Path;

pub fn ci(arguments: CiArguments) -> Result<Exit, CliError> {
    let sources = read(&[&arguments.config])?;
    let prepared = Request { sources, overrides: arguments.overrides.into(), ..Request::default() }.prepare()?;
    // An output that cannot be written costs nothing when it is known first.
    check_writable(folder_of(&arguments.output))?;
    let mut terminal = Terminal::new(Format::Table, Colour::Never);
    let ended = start(&prepared, arguments.out.as_deref(), &mut terminal);
    let printed = terminal.finish();
    let (_, outcome) = ended?;
    let device = prepared.plan().devices().first().copied();
    let arch = device
        .and_then(|device| devices::present(device).ok())
        .map_or_else(|| "unknown".to_owned(), |found| found.name);
    dashboard::write(&arguments.output, &outcome.records, &arch)?;
    tell!("wrote {}", arguments.output.display());
    let exit = report(&outcome, false);
    printed?;
    Ok(exit)
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
