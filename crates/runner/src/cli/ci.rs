//! `calorimeter ci`: a run that writes the JSON of the PyTorch benchmark dashboard.

use super::error::CliError;
use super::options::CiArguments;
use super::run::{execute, read_sources};
use crate::Exit;
use crate::run::Request;
use calorimeter_case::record::Record;
use calorimeter_probe::devices;
use calorimeter_sinks::journal::check_writable;
use calorimeter_sinks::{atomic, dashboard, log_line, services};
use std::path::Path;

/// Converts records to the format of a benchmark tracking service.
type ServiceFormat = fn(&[Record]) -> String;

pub(super) fn ci(arguments: CiArguments) -> Result<Exit, CliError> {
    let CiArguments { config, output, allow_empty, github_action_benchmark, bencher, openmetrics, models, mut run } =
        arguments;
    run.overrides.models = models;
    let sources = read_sources(&[&config])?;
    // Checks all outputs first, so that an unwritable path does not cost a run.
    let services: [(_, ServiceFormat); 3] = [
        (github_action_benchmark, services::github_action_benchmark),
        (bencher, services::bencher),
        (openmetrics, services::open_metrics),
    ];
    let paths = services.iter().filter_map(|(path, _)| path.as_ref());
    paths.chain([&output]).try_for_each(|path| check_writable(parent_dir(path)))?;
    let Some(mut finished) = execute(Request { sources, ..Request::default() }, run)? else { return Ok(Exit::Success) };
    let exit = finished.print_summary();
    let records = &finished.outcome.records;
    let device = records.first().map(|record| record.case.device);
    let arch = device
        .and_then(|device| devices::find_device(device).ok())
        .map_or_else(|| "unknown".to_owned(), |found| found.name);
    let entries = dashboard::write(&output, records, &arch)?;
    log_line!("wrote {}", output.display());
    for (path, text) in services {
        if let Some(path) = path {
            atomic::write_named(&path, text(records).as_bytes())?;
            log_line!("wrote {}", path.display());
        }
    }
    if entries == 0 && !allow_empty {
        log_line!(
            "error: {} is empty: no recipe was measured with its baseline; pass --allow-empty to accept this",
            output.display()
        );
        return finished.finish(if exit == Exit::Success { Exit::CaseFailed } else { exit });
    }
    finished.finish(exit)
}

fn parent_dir(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
