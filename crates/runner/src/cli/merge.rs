//! `calorimeter merge` and `calorimeter render`.

use super::error::CliError;
use crate::Exit;
use crate::merge::{MergedRun, merge};
use crate::run::{OutputDirs, sort_as_planned};
use calorimeter_sinks::journal::read_stored;
use calorimeter_sinks::{SinkError, SinkInput, log_line, write_all};
use clap::Args;
use std::path::PathBuf;

const EXIT_CODES: &str = "Exit codes:
  0    all parts are complete and merged
  2    invalid usage, an unreadable run, or parts of different plans
  5    parts or cases are missing; the others were merged";

/// Join the parts of a run that `run --shard` measured.
///
/// The new folder contains one journal with the records, traces and memory profiles of all parts, and the derived
/// files, as if one machine had measured the whole plan. Parts with different configurations or incomparable machines
/// are refused. Missing parts are listed.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(super) struct MergeArguments {
    /// Folders of the parts
    #[arg(value_name = "DIR", required = true)]
    pub parts: Vec<PathBuf>,
    /// New folder for the merged run
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// Write the derived files of a run again from its journal.
///
/// Writes tables, Parquet and the CSV formats of other programs as this version defines them, without measuring.
#[derive(Debug, Args)]
pub(super) struct RenderArguments {
    /// Folder of the run
    #[arg(value_name = "DIR")]
    pub run: PathBuf,
}

pub(super) fn merge_shards(arguments: MergeArguments) -> Result<Exit, CliError> {
    let MergedRun { records, paths, errors, notes, missing } = merge(&arguments.parts, &arguments.out)?;
    notes.iter().for_each(|note| log_line!("note: {note}"));
    log_line!("merged {records} cases of {} parts into {}", arguments.parts.len(), arguments.out.display());
    let exit = report_files(&paths, &errors);
    Ok(if missing.is_empty() { exit } else { Exit::CaseFailed })
}

pub(super) fn render(RenderArguments { run: dir }: RenderArguments) -> Result<Exit, CliError> {
    let (mut contents, stored) = read_stored(&dir)?;
    sort_as_planned(&mut contents.records, &contents.header);
    contents.warnings.iter().for_each(|warning| log_line!("note: {warning}"));
    let recorded = contents.header.output_dir.clone().unwrap_or_else(|| ".".into());
    let OutputDirs { dir, output_dir } = OutputDirs::from_journal(&dir, &recorded);
    let run = SinkInput { dir, output_dir, header: contents.header, records: contents.records, stored };
    let files = write_all(&run);
    Ok(report_files(&files.paths, &files.errors))
}

fn report_files(paths: &[PathBuf], errors: &[SinkError]) -> Exit {
    paths.iter().for_each(|path| log_line!("wrote {}", path.display()));
    errors.iter().for_each(|error| log_line!("error: {error}"));
    if errors.is_empty() { Exit::Success } else { Exit::CaseFailed }
}
