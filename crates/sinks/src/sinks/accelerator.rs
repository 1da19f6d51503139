//! The files of accelerator-microbenchmarks, for the cases that come from its configuration files and for suites that are
//! to write them: a table for each entry, column for column as it writes them, and the lines of `metrics_report.jsonl`.

mod row;
mod statistics;

use crate::sink::{Run, Sink};
use crate::spreadsheet::as_text;
use crate::{SinkError, atomic, lock};
use calorimeter_case::record::Record;
use calorimeter_case::{Export, too_long};
use row::{Cell, Column, Row};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Writes `<csv_path>/t_<benchmark>_<ten characters>.tsv` for each entry, and adds to `<metrics_dir>/metrics_report.jsonl`.
pub struct Accelerator;

impl Sink for Accelerator {
    fn name(&self) -> &'static str {
        "accelerator"
    }

    fn write(&self, run: &Run) -> Result<Vec<PathBuf>, SinkError> {
        let mut paths = Vec::new();
        let mut reports: BTreeMap<PathBuf, Vec<(String, Vec<Row>)>> = BTreeMap::new();
        for (export, records) in entries(&run.records) {
            let mut rows = Vec::new();
            for record in &records {
                rows.extend(Row::of(&*run.with_series(record)?));
            }
            if rows.is_empty() {
                continue;
            }
            let name = format!("t_{}_{}", one_part(records[0].case.workload.as_str()), token(run, export.entry));
            if let Some(csv_path) = &export.csv_path {
                let path = folder(run, csv_path).join(format!("{name}.tsv"));
                atomic::write(&path, &table(&rows).map_err(|cause| SinkError::format(&path, cause))?)?;
                paths.push(path);
            }
            if let Some(metrics_dir) = &export.metrics_dir {
                let path = folder(run, metrics_dir).join("metrics_report.jsonl");
                reports.entry(path).or_default().push((name, rows));
            }
        }
        for (path, reports) in reports {
            add(&path, &reports)?;
            paths.push(path);
        }
        Ok(paths)
    }
}

/// The records of each entry, in order.
fn entries(records: &[Record]) -> Vec<(&Export, Vec<&Record>)> {
    let mut entries: Vec<(&Export, Vec<&Record>)> = Vec::new();
    let mut place_of: HashMap<u32, usize> = HashMap::new();
    for record in records {
        let Some(export) = &record.case.export else { continue };
        let place = *place_of.entry(export.entry).or_insert_with(|| {
            entries.push((export, Vec::new()));
            entries.len() - 1
        });
        entries[place].1.push(record);
    }
    entries
}

/// Where the file says; but where a folder for everything was given, or the place is not on this machine, below the run's
/// folder under the last part of its name.
fn folder(run: &Run, told: &str) -> PathBuf {
    let told = Path::new(told);
    if run.dir == run.output_dir || told.to_string_lossy().contains("://") {
        return run.dir.join(told.file_name().unwrap_or_default());
    }
    told.to_owned()
}

/// A name as one part of a path: that of a journal may be anything.
fn one_part(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c), "_")
}

/// Ten characters that are theirs at random, and the same here whenever the files of a run are made again.
fn token(run: &Run, entry: u32) -> String {
    const CHARACTERS: &[u8; 36] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    let header = &run.header;
    let identity = format!("{} {} {} {entry}", header.run_id, header.started, header.config_fingerprint);
    // FNV-1a.
    let hash = identity
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (0..10).map(|place| char::from(CHARACTERS[(hash / 36u64.pow(place) % 36) as usize])).collect()
}

fn table(rows: &[Row]) -> Result<Vec<u8>, ::csv::Error> {
    let mut writer = ::csv::WriterBuilder::new().delimiter(b'\t').from_writer(Vec::new());
    writer.write_record(rows[0].columns().map(|(name, _)| name))?;
    for row in rows {
        writer.write_record(row.columns().map(|(_, cell)| written(cell)))?;
    }
    writer.into_inner().map_err(|failed| failed.into_error().into())
}

/// A cell of the table: names are the user's, and numbers are not to be taken for formulas.
fn written(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => as_text(text.into()).into_owned(),
        figure => figure.text(),
    }
}

/// One line of `metrics_report.jsonl`.
#[derive(Serialize)]
struct Line {
    metrics: Ordered,
    dimensions: Ordered,
}

/// A JSON object in the order of its columns.
struct Ordered(Vec<Column>);

impl Serialize for Ordered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, cell)| (name, cell)))
    }
}

impl Line {
    fn of(row: &Row, report: &str) -> Self {
        let measured = row.metrics.iter().chain(&row.newer).filter(|(_, cell)| *cell != Cell::Empty);
        let facts = row.metadata.iter().chain(&row.ours).filter(|(_, cell)| *cell != Cell::Empty);
        let mut dimensions: Vec<Column> = facts.map(|(name, cell)| (name.clone(), Cell::Text(cell.text()))).collect();
        dimensions.push((REPORT.into(), Cell::Text(report.to_owned())));
        Self { metrics: Ordered(measured.cloned().collect()), dimensions: Ordered(dimensions) }
    }
}

/// The dimension by which lines are found again when the files of a run are made anew.
const REPORT: &str = "report";

/// How long others may keep a report locked, who add their lines in a moment.
const PATIENCE: Duration = Duration::from_secs(10);

/// Adds lines to a file that others write to as well, in place of those that this run has there already.
fn add(path: &Path, reports: &[(String, Vec<Row>)]) -> Result<(), SinkError> {
    let mut lines = String::new();
    for (row, name) in reports.iter().flat_map(|(name, rows)| rows.iter().map(move |row| (row, name))) {
        let line = serde_json::to_string(&Line::of(row, name)).map_err(|cause| SinkError::format(path, cause))?;
        lines.extend([&line, "\n"]);
    }
    let failed = |cause| SinkError::write(path, cause);
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
    let mut file = lock::open_alone(path, PATIENCE)?;
    let names: HashSet<&str> = reports.iter().map(|(name, _)| name.as_str()).collect();
    let (mut again, mut before, mut ended) = (false, 0, true);
    each_line(&file, path, |line| {
        again |= is_of(line, &names);
        (before, ended) = (before + line.len() as u64, line.ends_with(b"\n"));
        Ok(())
    })?;
    if again {
        file.rewind().map_err(failed)?;
        return atomic::write_with(path, |anew| {
            let mut anew = BufWriter::new(anew);
            each_line(&file, path, |line| {
                if is_of(line, &names) {
                    return Ok(());
                }
                let end: &[u8] = if line.ends_with(b"\n") { b"" } else { b"\n" };
                anew.write_all(line).and_then(|()| anew.write_all(end)).map_err(failed)
            })?;
            anew.write_all(lines.as_bytes()).and_then(|()| anew.flush()).map_err(failed)
        });
    }
    if !ended {
        lines.insert(0, '\n');
    }
    // At once and at the end: other programs add to it too, and know no lock.
    file.write_all(lines.as_bytes()).map_err(|cause| {
        let _ = file.set_len(before);
        failed(cause)
    })
}

/// Whether a line belongs to one of these reports.
fn is_of(line: &[u8], reports: &HashSet<&str>) -> bool {
    let line = String::from_utf8_lossy(line);
    let mark = format!("\"{REPORT}\":\"");
    line.match_indices(&mark).any(|(at, _)| {
        let name = line[at + mark.len()..].split('"').next().unwrap_or_default();
        reports.contains(name)
    })
}

/// A line of such a report has a few KiB.
const MOST_BYTES: u64 = 16 << 20;

/// Each line with its end, one at a time: the file grows with every run of every program that adds to it.
fn each_line(file: &File, path: &Path, mut take: impl FnMut(&[u8]) -> Result<(), SinkError>) -> Result<(), SinkError> {
    let (mut reader, mut line) = (BufReader::new(file), Vec::new());
    let unreadable = |cause| SinkError::Read { path: path.to_owned(), cause };
    loop {
        line.clear();
        let bytes = (&mut reader).take(MOST_BYTES + 1).read_until(b'\n', &mut line).map_err(unreadable)? as u64;
        match bytes {
            0 => return Ok(()),
            bytes if bytes > MOST_BYTES => return Err(unreadable(too_long(MOST_BYTES, "a line of such a file"))),
            _ => take(&line)?,
        }
    }
}
