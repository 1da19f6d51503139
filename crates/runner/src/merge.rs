//! Parts of a run that several machines or jobs measured, joined into one.

use crate::compare::{Likeness, likeness};
use crate::entries::Shard;
use crate::fingerprint::fnv1a;
use crate::host::{command_line, now};
use crate::run::{Request, RunError, sort_as_planned};
use crate::suite_speedups::speedups;
use calorimeter_case::{Device, Record};
use calorimeter_sinks::journal::{Header, Summary, count_by_status, read_stored};
use calorimeter_sinks::{Journal, ReadBack, Run, SinkError, write_all};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// A run that was joined.
#[derive(Debug)]
pub struct Merged {
    /// How many records it has.
    pub records: usize,
    /// Files written.
    pub paths: Vec<PathBuf>,
    /// Derived files that could not be written.
    pub errors: Vec<SinkError>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Parts that are missing, or that have not ended.
    pub missing: Vec<String>,
}

/// Why parts cannot be joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A journal cannot be read or written.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// A journal has no configuration.
    #[error(transparent)]
    Run(#[from] RunError),
    /// There is no other part.
    #[error("{} is a whole run; `run --shard` measures parts, and compare and report take whole runs as they are", .dir.display())]
    Whole {
        /// Its folder.
        dir: PathBuf,
    },
    /// It has another configuration.
    #[error("{} is a part of another run than {}: their configurations differ", .dir.display(), .first.display())]
    Other {
        /// Its folder.
        dir: PathBuf,
        /// That of the first part.
        first: PathBuf,
    },
    /// Two folders hold one part.
    #[error("{} and {} are both part {shard}", .one.display(), .other.display())]
    Twice {
        /// Which part.
        shard: Shard,
        /// A folder.
        one: PathBuf,
        /// Another one.
        other: PathBuf,
    },
    /// What machines differ in.
    #[error("these parts are not of machines alike, so their times do not belong into one run: {reasons}")]
    Unlike {
        /// All that keeps their times from being compared.
        reasons: String,
    },
    /// A trace or a memory profile cannot be copied.
    #[error("cannot copy {}: {cause}", .path.display())]
    Copy {
        /// The file.
        path: PathBuf,
        /// The system's word.
        cause: io::Error,
    },
}

/// One part, read.
struct Part {
    dir: PathBuf,
    request: Request,
    header: Header,
    run: Run,
}

/// Joins the parts of a run into a new folder, which holds what the run would have left if one machine had measured it.
pub fn merge(parts: &[PathBuf], out: &Path) -> Result<Merged, MergeError> {
    let mut parts_by_shard: BTreeMap<Shard, Part> = BTreeMap::new();
    let mut first: Option<(PathBuf, Request)> = None;
    for dir in parts {
        let (shard, part) = read(dir)?;
        match &first {
            None => first = Some((dir.clone(), part.request.clone())),
            Some((_, request)) if *request == part.request => {}
            Some((first, _)) => return Err(MergeError::Other { dir: dir.clone(), first: first.clone() }),
        }
        if let Some(other) = parts_by_shard.insert(shard, part) {
            return Err(MergeError::Twice { shard, one: other.dir, other: dir.clone() });
        }
    }
    let missing = missing(&parts_by_shard);
    let parts: Vec<Part> = parts_by_shard.into_values().collect();
    let mut notes = alike(&parts)?;
    notes.extend(missing.iter().cloned());
    let header = header(&parts);
    let mut journal = Journal::create(out, &header)?;
    let mut records: Vec<Record> = Vec::new();
    for part in &parts {
        for record in part.run.whole() {
            let record = record?.into_owned();
            copy_files(&record, &part.dir, out)?;
            journal.append(&record)?;
            records.push(record);
            records.last_mut().map(Record::take_series);
        }
    }
    sort_as_planned(&mut records, &header);
    let (counts, suite) = (count_by_status(&records), speedups(&records));
    let summary =
        Summary { finished: now().to_rfc3339(), interrupted: !missing.is_empty(), counts, notes: notes.clone(), suite };
    let stored = journal.finish(&summary)?;
    let run = Run { dir: out.to_owned(), output_dir: out.to_owned(), header, records, stored };
    let written = write_all(&run);
    Ok(Merged { records: run.records.len(), paths: written.paths, errors: written.errors, notes, missing })
}

fn read(dir: &Path) -> Result<(Shard, Part), MergeError> {
    let mut request = Request::of_journal(dir)?;
    let shard = request.overrides.shard.take().ok_or_else(|| MergeError::Whole { dir: dir.to_owned() })?;
    let (contents, stored) = read_stored(dir)?;
    let (header, dir) = (contents.header, dir.to_owned());
    let run =
        Run { dir: dir.clone(), output_dir: dir.clone(), header: header.clone(), records: contents.records, stored };
    Ok((shard, Part { dir, request, header, run }))
}

/// What of the whole is not there.
fn missing(parts: &BTreeMap<Shard, Part>) -> Vec<String> {
    let count = parts.keys().next().map_or(0, |shard| shard.parts());
    let told = |shard: Shard| match parts.get(&shard) {
        None => Some(format!("part {shard} is missing")),
        Some(Part { dir, header, run, .. }) => {
            let (has, plan) = (run.records.len() as u64, header.plan_cases);
            let dir = dir.display();
            (has < plan).then(|| {
                format!("part {shard} has {has} of {plan} cases; go on with it: calorimeter run --resume {dir}")
            })
        }
    };
    Shard::all(count).filter_map(told).collect()
}

/// Refuses parts of machines whose times cannot be compared; answers what else differs.
fn alike(parts: &[Part]) -> Result<Vec<String>, MergeError> {
    let devices: BTreeSet<Device> = parts.iter().flat_map(|part| &part.run.records).map(|r| r.case.device).collect();
    let told = |part: &Part| crate::compare::Run {
        name: part.dir.display().to_string(),
        read: ReadBack { header: Some(part.header.clone()), resumed: Vec::new(), records: Vec::new() },
    };
    let runs: Vec<_> = parts.iter().map(told).collect();
    let Likeness { unlike, differences } = likeness(&runs, &devices);
    if unlike.is_empty() { Ok(differences) } else { Err(MergeError::Unlike { reasons: unlike.join("; ") }) }
}

/// That of the first part, for all of them. No plan has its fingerprint, so that nobody goes on with it.
fn header(parts: &[Part]) -> Header {
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

/// Copies what a record leads to in the folder of its run.
fn copy_files(record: &Record, from: &Path, to: &Path) -> Result<(), MergeError> {
    let files = [record.profile.trace.as_ref(), record.footprint.memory_profile.as_ref()];
    for file in files.into_iter().flatten().map(Path::new) {
        // A journal may come from somebody else, and does not lead out of its folder.
        if file.components().all(|part| matches!(part, Component::Normal(_))) {
            copy(&from.join(file), &to.join(file))?;
        }
    }
    Ok(())
}

/// A file, or a folder with all its files. What is not there is not missed: it may have been cleared away.
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
