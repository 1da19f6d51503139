//! Merging of shards that several machines or jobs measured.

use crate::entries::Shard;
use crate::fingerprint::fnv1a;
use crate::run::{Request, RunError, sort_as_planned};
use crate::suite_speedups::speedups;
use calorimeter_case::{Device, Record};
use calorimeter_compare::{Comparability, ComparedRun, check_comparability};
use calorimeter_probe::host::{command_line, now};
use calorimeter_sinks::journal::{Header, RunSummary, count_by_status};
use calorimeter_sinks::{Journal, SinkError, SinkInput, StoredRun, write_all};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Result of a merge.
#[derive(Debug)]
pub(crate) struct MergedRun {
    /// Number of records.
    pub records: usize,
    /// Files written.
    pub paths: Vec<PathBuf>,
    /// Errors of derived files that could not be written.
    pub errors: Vec<SinkError>,
    /// Notes for the reader of the results.
    pub notes: Vec<String>,
    /// Shards that are missing or incomplete.
    pub missing: Vec<String>,
}

/// Error of a merge.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum MergeError {
    /// A journal cannot be read or written.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// A journal has no configuration.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The run is complete and not a shard.
    #[error("{} is a complete run, not a shard; compare and report accept it directly", .dir.display())]
    NotSharded {
        /// Folder of the run.
        dir: PathBuf,
    },
    /// The shard has a different configuration.
    #[error("{} and {} are shards of different runs: their configurations differ", .dir.display(), .first.display())]
    DifferentRun {
        /// Folder of the shard.
        dir: PathBuf,
        /// Folder of the first shard.
        first: PathBuf,
    },
    /// Two folders hold one shard.
    #[error("{} and {} are both shard {shard}", .one.display(), .other.display())]
    DuplicateShard {
        /// Number of the shard.
        shard: Shard,
        /// First folder.
        one: PathBuf,
        /// Second folder.
        other: PathBuf,
    },
    /// Shards were measured on different machines.
    #[error("the shards are from different machines, so their times cannot be merged: {reasons}")]
    DifferentMachines {
        /// Differences that make the times incomparable.
        reasons: String,
    },
    /// A trace or a memory profile cannot be copied.
    #[error("cannot copy {}: {cause}", .path.display())]
    Copy {
        /// File to copy.
        path: PathBuf,
        /// Error of the operating system.
        cause: io::Error,
    },
}

/// Shard that was read from disk.
struct RunShard {
    dir: PathBuf,
    request: Request,
    header: Header,
    run: SinkInput,
}

/// Merges shards into a new folder, with the content of a run that one machine had measured alone.
pub(crate) fn merge(parts: &[PathBuf], out: &Path) -> Result<MergedRun, MergeError> {
    let mut parts_by_shard: BTreeMap<Shard, RunShard> = BTreeMap::new();
    let mut first: Option<(PathBuf, Request)> = None;
    for dir in parts {
        let (shard, part) = read(dir)?;
        match &first {
            None => first = Some((dir.clone(), part.request.clone())),
            Some((_, request)) if *request == part.request => {}
            Some((first, _)) => return Err(MergeError::DifferentRun { dir: dir.clone(), first: first.clone() }),
        }
        if let Some(other) = parts_by_shard.insert(shard, part) {
            return Err(MergeError::DuplicateShard { shard, one: other.dir, other: dir.clone() });
        }
    }
    let missing = missing_shards(&parts_by_shard);
    let parts: Vec<RunShard> = parts_by_shard.into_values().collect();
    let mut notes = check_machines(&parts)?;
    notes.extend(missing.iter().cloned());
    let header = merged_header(&parts);
    let mut journal = Journal::create(out, &header)?;
    let mut records: Vec<Record> = Vec::new();
    for part in &parts {
        for record in part.run.records_with_series() {
            let record = record?.into_owned();
            copy_attachments(&record, &part.dir, out)?;
            journal.append(&record)?;
            records.push(record);
            records.last_mut().map(Record::take_series);
        }
    }
    sort_as_planned(&mut records, &header);
    let (counts, suite) = (count_by_status(&records), speedups(&records));
    let summary = RunSummary {
        finished: now().to_rfc3339(),
        interrupted: !missing.is_empty(),
        counts,
        notes: notes.clone(),
        suite,
    };
    let stored = journal.finish(&summary)?;
    let run = SinkInput { dir: out.to_owned(), output_dir: out.to_owned(), header, records, stored };
    let written = write_all(&run);
    Ok(MergedRun { records: run.records.len(), paths: written.paths, errors: written.errors, notes, missing })
}

fn read(dir: &Path) -> Result<(Shard, RunShard), MergeError> {
    let mut request = Request::from_journal(dir)?;
    let shard = request.overrides.shard.take().ok_or_else(|| MergeError::NotSharded { dir: dir.to_owned() })?;
    let run = SinkInput::read(dir)?;
    Ok((shard, RunShard { dir: dir.to_owned(), request, header: run.header.clone(), run }))
}

/// Describes shards that are missing or incomplete.
fn missing_shards(parts: &BTreeMap<Shard, RunShard>) -> Vec<String> {
    let count = parts.keys().next().map_or(0, |shard| shard.parts());
    let note = |shard: Shard| match parts.get(&shard) {
        None => Some(format!("shard {shard} is missing")),
        Some(RunShard { dir, header, run, .. }) => {
            let (has, plan) = (run.records.len() as u64, header.plan_cases?);
            let dir = dir.display();
            (has < plan)
                .then(|| format!("shard {shard} has {has} of {plan} cases; resume it: calorimeter run --resume {dir}"))
        }
    };
    Shard::all(count).filter_map(note).collect()
}

/// Fails if the times of the machines cannot be compared; returns their other differences.
fn check_machines(parts: &[RunShard]) -> Result<Vec<String>, MergeError> {
    let devices: BTreeSet<Device> = parts.iter().flat_map(|part| &part.run.records).map(|r| r.case.device).collect();
    let run = |part: &RunShard| ComparedRun {
        name: part.dir.display().to_string(),
        read: StoredRun { header: Some(part.header.clone()), resumed: Vec::new(), records: Vec::new() },
    };
    let runs: Vec<_> = parts.iter().map(run).collect();
    let Comparability { unlike, differences } = check_comparability(&runs, &devices);
    if unlike.is_empty() { Ok(differences) } else { Err(MergeError::DifferentMachines { reasons: unlike.join("; ") }) }
}

/// Builds the header of the merged run from the first shard. Its fingerprint matches no plan, so that the merged run
/// cannot be resumed.
fn merged_header(parts: &[RunShard]) -> Header {
    let fingerprints: Vec<&str> = parts.iter().map(|part| part.header.config_fingerprint.as_str()).collect();
    let mut header = parts[0].header.clone();
    if let Some(overrides) = header.config["overrides"].as_object_mut() {
        overrides.remove("shard");
    }
    header.started = parts.iter().map(|part| part.header.started.clone()).min().unwrap_or_default();
    Header {
        argv: command_line(),
        config_fingerprint: format!("{:016x}", fnv1a(fingerprints.join(" ").as_bytes())),
        plan_cases: parts.iter().map(|part| part.header.plan_cases).sum(),
        output_dir: Some(".".into()),
        ..header
    }
}

/// Copies the files that a record refers to: trace and memory profile.
fn copy_attachments(record: &Record, from: &Path, to: &Path) -> Result<(), MergeError> {
    let files = [record.profile.trace.as_ref(), record.footprint.memory_profile.as_ref()];
    for file in files.into_iter().flatten().map(Path::new) {
        // A journal may come from another user; its paths must not leave its folder.
        if file.components().all(|part| matches!(part, Component::Normal(_))) {
            copy(&from.join(file), &to.join(file))?;
        }
    }
    Ok(())
}

/// Copies a file or a folder recursively. Missing files are ignored, because they may have been deleted.
fn copy(from: &Path, to: &Path) -> Result<(), MergeError> {
    let failed = |cause| MergeError::Copy { path: from.to_owned(), cause };
    let Ok(kind) = fs::symlink_metadata(from) else { return Ok(()) };
    if kind.is_dir() {
        for entry in fs::read_dir(from).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if kind.is_file() {
        fs::create_dir_all(to.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        fs::copy(from, to).map_err(failed)?;
    }
    Ok(())
}
