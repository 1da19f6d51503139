//! Files of accelerator-microbenchmarks, for cases from its configuration files and for suites that request them. Version
//! 1: a table per entry, with its columns, and the lines of `metrics_report.jsonl`. Version 2: `detailed.json` and
//! `summary.csv`.

mod detailed;
mod ordered_object;
mod row;
mod statistics;

use crate::columns::Cell;
use crate::python::{format_cell, spreadsheet_text, text};
use crate::sink::{Sink, SinkInput};
use crate::{SinkError, atomic, lock};
use calorimeter_case::record::Record;
use calorimeter_case::{Export, too_large_error};
pub use detailed::BenchmarkRequest;
use ordered_object::OrderedObject;
use row::{AcceleratorRow, NamedCell};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Writes `<csv_path>/t_<benchmark>_<ten characters>.tsv` for each entry, and appends to
/// `<metrics_dir>/metrics_report.jsonl`. Writes `detailed.json` and `summary.csv` for files of version 2.
pub struct Accelerator;

impl Sink for Accelerator {
    fn name(&self) -> &'static str {
        "accelerator"
    }

    fn write(&self, run: &SinkInput) -> Result<Vec<PathBuf>, SinkError> {
        let mut paths = detailed::write(run)?;
        let mut reports: BTreeMap<PathBuf, Vec<(String, Vec<AcceleratorRow>)>> = BTreeMap::new();
        for (export, records) in entries(&run.records) {
            let mut rows = Vec::new();
            for record in &records {
                rows.extend(AcceleratorRow::from_record(&*run.with_series(record)?));
            }
            if rows.is_empty() {
                continue;
            }
            let name =
                format!("t_{}_{}", sanitize_name(records[0].case.workload.as_str()), file_token(run, export.entry));
            if let Some(csv_path) = &export.csv_path {
                let path = output_dir(run, csv_path).join(format!("{name}.tsv"));
                atomic::write(&path, &table(&rows).map_err(|cause| SinkError::format(&path, cause))?)?;
                paths.push(path);
            }
            if let Some(metrics_dir) = &export.metrics_dir {
                let path = output_dir(run, metrics_dir).join("metrics_report.jsonl");
                reports.entry(path).or_default().push((name, rows));
            }
        }
        for (path, reports) in reports {
            append_lines(&path, &reports)?;
            paths.push(path);
        }
        Ok(paths)
    }
}

/// Groups the records of version 1 by configuration entry, in order.
fn entries(records: &[Record]) -> Vec<(&Export, Vec<&Record>)> {
    let mut entries: Vec<(&Export, Vec<&Record>)> = Vec::new();
    let mut index_of: HashMap<u32, usize> = HashMap::new();
    for record in records {
        let Some(export) = record.case.export.as_ref().filter(|export| export.benchmark.is_none()) else { continue };
        let index = *index_of.entry(export.entry).or_insert_with(|| {
            entries.push((export, Vec::new()));
            entries.len() - 1
        });
        entries[index].1.push(record);
    }
    entries
}

/// Output directory of an entry.
///
/// If the user gave a directory for all results, or the configured one is a URL, it is a subdirectory of the run with
/// the last part of the configured path.
fn output_dir(run: &SinkInput, configured: &str) -> PathBuf {
    let configured = Path::new(configured);
    if run.dir == run.output_dir || configured.to_string_lossy().contains("://") {
        return run.dir.join(configured.file_name().unwrap_or_default());
    }
    configured.to_owned()
}

/// Sanitizes a name for use in a path; names in a journal are arbitrary.
fn sanitize_name(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c), "_")
}

/// Ten characters that are random in the original and here a hash of the run and entry, so that files keep their names
/// when rendered again.
fn file_token(run: &SinkInput, entry: u32) -> String {
    const CHARACTERS: &[u8; 36] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let header = &run.header;
    let identity = format!("{} {} {} {entry}", header.run_id, header.started, header.config_fingerprint);
    // FNV-1a.
    let hash = identity
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (0..10).map(|place| char::from(CHARACTERS[(hash / 36u64.pow(place) % 36) as usize])).collect()
}

fn table(rows: &[AcceleratorRow]) -> Result<Vec<u8>, ::csv::Error> {
    let mut writer = ::csv::WriterBuilder::new().delimiter(b'\t').from_writer(Vec::new());
    writer.write_record(rows[0].columns().map(|(name, _)| name))?;
    for row in rows {
        writer.write_record(row.columns().map(|(_, cell)| spreadsheet_text(cell.as_ref())))?;
    }
    writer.into_inner().map_err(|failed| failed.into_error().into())
}

/// Line of `metrics_report.jsonl`.
#[derive(Serialize)]
struct MetricsLine {
    metrics: OrderedObject<Option<Cell<'static>>>,
    dimensions: OrderedObject<Option<Cell<'static>>>,
}

impl MetricsLine {
    fn new(row: &AcceleratorRow, report: &str) -> Self {
        let measured = row.metrics.iter().chain(&row.newer).filter(|(_, cell)| cell.is_some());
        let facts = row.metadata.iter().chain(&row.own).filter(|(_, cell)| cell.is_some());
        let mut dimensions: Vec<NamedCell> =
            facts.map(|(name, cell)| (name.clone(), text(format_cell(cell.as_ref())))).collect();
        dimensions.push((REPORT_DIMENSION.into(), text(report)));
        Self { metrics: OrderedObject(measured.cloned().collect()), dimensions: OrderedObject(dimensions) }
    }
}

/// Dimension that identifies the lines of a run when its files are rendered again.
const REPORT_DIMENSION: &str = "report";

/// Timeout for the lock of a report that other processes append to.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Appends lines to a shared file and removes earlier lines of this run.
fn append_lines(path: &Path, reports: &[(String, Vec<AcceleratorRow>)]) -> Result<(), SinkError> {
    let mut lines = String::new();
    for (row, name) in reports.iter().flat_map(|(name, rows)| rows.iter().map(move |row| (row, name))) {
        let line =
            serde_json::to_string(&MetricsLine::new(row, name)).map_err(|cause| SinkError::format(path, cause))?;
        lines.extend([&line, "\n"]);
    }
    let failed = |cause| SinkError::write(path, cause);
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
    let mut file = lock::open_locked(path, LOCK_TIMEOUT)?;
    let names: HashSet<&str> = reports.iter().map(|(name, _)| name.as_str()).collect();
    let (mut has_own_lines, mut before, mut ended) = (false, 0, true);
    each_line(&file, path, |line| {
        has_own_lines |= belongs_to(line, &names);
        (before, ended) = (before + line.len() as u64, line.ends_with(b"\n"));
        Ok(())
    })?;
    if has_own_lines {
        file.rewind().map_err(failed)?;
        return atomic::write_with(path, |output| {
            let mut output = BufWriter::new(output);
            each_line(&file, path, |line| {
                if belongs_to(line, &names) {
                    return Ok(());
                }
                let end: &[u8] = if line.ends_with(b"\n") { b"" } else { b"\n" };
                output.write_all(line).and_then(|()| output.write_all(end)).map_err(failed)
            })?;
            output.write_all(lines.as_bytes()).and_then(|()| output.flush()).map_err(failed)
        });
    }
    if !ended {
        lines.insert(0, '\n');
    }
    // One write at the end, because programs without locks append to the file, too.
    file.write_all(lines.as_bytes()).map_err(|cause| {
        let _ = file.set_len(before);
        failed(cause)
    })
}

/// True if a line belongs to one of these reports.
fn belongs_to(line: &[u8], reports: &HashSet<&str>) -> bool {
    let line = String::from_utf8_lossy(line);
    let mark = format!("\"{REPORT_DIMENSION}\":\"");
    line.match_indices(&mark).any(|(at, _)| {
        let name = line[at + mark.len()..].split('"').next().unwrap_or_default();
        reports.contains(name)
    })
}

/// Maximum length of a line; lines of such a report have a few KiB.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// Calls `take` for each line with its line feed. Streamed, because every run of every program appends to the file.
fn each_line(file: &File, path: &Path, mut take: impl FnMut(&[u8]) -> Result<(), SinkError>) -> Result<(), SinkError> {
    let (mut reader, mut line) = (BufReader::new(file), Vec::new());
    let unreadable = |cause| SinkError::Read { path: path.to_owned(), cause };
    loop {
        line.clear();
        let bytes = (&mut reader).take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line).map_err(unreadable)? as u64;
        match bytes {
            0 => return Ok(()),
            bytes if bytes > MAX_LINE_BYTES => {
                return Err(unreadable(too_large_error(MAX_LINE_BYTES, "a line of this file")));
            }
            _ => take(&line)?,
        }
    }
}
