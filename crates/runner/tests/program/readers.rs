//! Readers of each kind of file, called in this process. Shared with the fuzz targets.

use calorimeter_probe::devices::Devices;
use calorimeter_runner::dialects::{ConfigSource, read};
use calorimeter_runner::entries::{Overrides, resolve};
pub(crate) use calorimeter_runner::fuzz_api::{clock_note, decisions, noise, peaks, profile};
use calorimeter_runner::plan::Plan;
use calorimeter_runner::run::Request;
use calorimeter_sinks::journal::{JournalContents, read as read_journal};
use calorimeter_sinks::terminal::{Color, WIDTH, operators, summary};
use calorimeter_sinks::{SeriesStore, SinkError, SinkInput, write_all};
use std::fs;
use std::path::Path;

/// Larger plans are only counted; mutations create them easily.
const MAX_PLANNED_CASES: u64 = 5_000;

/// Reads a file of a kind, and returns the error message.
pub(crate) type Reader = fn(&Path) -> Result<(), String>;

pub(crate) fn config(path: &Path) -> Result<(), String> {
    let source = ConfigSource::read(path).map_err(|error| error.to_string())?;
    let devices = Devices::simulated([]);
    let document = read(&[source], &devices).map_err(|error| error.to_string())?;
    let entries = resolve(document.entries, &Overrides::default(), &devices).map_err(|error| error.to_string())?;
    if entries.iter().map(|entry| entry.case_count()).sum::<u64>() <= MAX_PLANNED_CASES {
        let plan = Plan::new(entries, None);
        assert_eq!(plan.cases().count(), plan.len());
    }
    Ok(())
}

pub(crate) fn journal(path: &Path) -> Result<(), String> {
    let folder = path.with_extension("run");
    fs::create_dir_all(&folder).unwrap();
    fs::copy(path, folder.join("journal.jsonl")).unwrap();
    let contents = read_journal(&folder).map_err(|error| error.to_string())?;
    written(&folder.join("derived"), contents);
    let request = Request::from_journal(&folder).map_err(|error| error.to_string())?;
    request.prepare_for(&Devices::simulated([])).map_err(|error| error.to_string()).map(drop)
}

/// Derives all outputs from a journal, and formats the summary.
fn written(dir: &Path, contents: JournalContents) {
    let JournalContents { header, records, .. } = contents;
    drop(summary(&records, &[], Color::Never, WIDTH));
    drop(operators(&records, Color::Never, WIDTH));
    drop(fs::remove_dir_all(dir));
    fs::create_dir(dir).unwrap();
    let run =
        SinkInput { dir: dir.to_owned(), output_dir: dir.to_owned(), header, records, stored: SeriesStore::default() };
    let panicked = |error: &SinkError| matches!(error, SinkError::Panicked { .. });
    assert!(!write_all(&run).errors.iter().any(panicked), "{run:?}");
}

pub(crate) fn shapes(path: &Path) -> Result<(), String> {
    let name = path.file_name().unwrap().to_str().unwrap();
    let source = format!("{{name: csv, path: {name}}}");
    let source: calorimeter_shapes::ShapeSource = serde_yaml::from_str(&source).unwrap();
    source.shapes_in(path.parent().unwrap()).map_err(|error| error.to_string()).map(drop)
}

/// Returns the defect of an error message, if any.
pub(crate) fn faults(error: &str) -> Option<String> {
    // Paths are unescaped in errors; terminal output escapes them.
    let plain = error.chars().filter(|c| c.is_control() && *c != '\u{7f}').count() == 0;
    (error.len() < 10 || error.len() > 8000 || !plain).then(|| format!("no sentence: {error:?}"))
}
