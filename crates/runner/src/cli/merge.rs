//! `calorimeter merge` and `calorimeter render`.

use super::error::CliError;
use crate::Exit;
use crate::merge::{Merged, merge};
use crate::run::{Place, sort_as_planned};
use crate::tell::tell;
use calorimeter_sinks::journal::read_stored;
use calorimeter_sinks::{Run, SinkError, write_all};
use clap::Args;
use std::path::PathBuf;

const EXIT_CODES: &str = "Exit codes:
  0    every part is there, and has ended
  2    usage, a run that cannot be read, or parts that do not belong together
  5    something is missing; what is there was joined";

/// Join the parts of a run that `run --shard` measured.
///
/// The new folder has one journal, with the records, traces and memory profiles of all parts, and the files that are derived
/// from it, as if one machine had measured the whole plan. Parts of other configurations are refused, and so are parts of
/// machines whose times cannot be compared. What is missing is named.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub struct MergeArguments {
    /// Folders of the parts
    #[arg(value_name = "DIR", required = true)]
    pub parts: Vec<PathBuf>,
    /// A new folder for the whole
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// Write the files that are derived from a run's journal anew.
///
/// Tables, Parquet and the CSV of other programs, as this version writes them; nothing is measured.
#[derive(Debug, Args)]
pub struct RenderArguments {
    /// Folder of the run
    #[arg(value_name = "DIR")]
    pub run: PathBuf,
}

pub fn join(arguments: MergeArguments) -> Result<Exit, CliError> {
    let Merged { records, paths, errors, notes, missing } = merge(&arguments.parts, &arguments.out)?;
    notes.iter().for_each(|note| tell!("note: {note}"));
    tell!("{records} cases of {} parts in {}", arguments.parts.len(), arguments.out.display());
    let exit = written(&paths, &errors);
    Ok(if missing.is_empty() { exit } else { Exit::Broken })
}

pub fn render(RenderArguments { run: dir }: RenderArguments) -> Result<Exit, CliError> {
    let (mut contents, stored) = read_stored(&dir)?;
    sort_as_planned(&mut contents.records, &contents.header);
    contents.warnings.iter().for_each(|warning| tell!("note: {warning}"));
    let told = contents.header.output_dir.clone().unwrap_or_else(|| ".".into());
    let Place { dir, output_dir } = Place::of_run(&dir, &told);
    let run = Run { dir, output_dir, header: contents.header, records: contents.records, stored };
    let files = write_all(&run);
    Ok(written(&files.paths, &files.errors))
}

fn written(paths: &[PathBuf], errors: &[SinkError]) -> Exit {
    paths.iter().for_each(|path| tell!("wrote {}", path.display()));
    errors.iter().for_each(|error| tell!("error: {error}"));
    if errors.is_empty() { Exit::Fine } else { Exit::Broken }
}
