//! A run: the plan's groups one after the other, each record on disk before anything else happens.

use crate::device_sensors;
use crate::devices::{self, DeviceError, Devices, DiscoveredDevice};
use crate::dialects::{self, Document, Source};
use crate::entries::{Autotune, ConfigError, Entry, Overrides, ResolvedEntry, resolve};
use crate::environment;
use crate::expression::{self, NoExpression};
use crate::fingerprint::fnv1a;
use crate::noise;
use crate::plan::{Group, Plan};
use crate::suite_speedups::speedups;
use crate::worker::{Assignment, Executor, Seen, Stage, Watch, WorkerError};
use calorimeter_case::CaseId;
use calorimeter_case::record::SuiteSpeedup;
use calorimeter_sinks::journal::{self, Header, JournalContents, Resumed, Summary, count_by_status};
use calorimeter_sinks::{Case, Journal, Record, Run, SinkError, Status, write_all};
use calorimeter_timing::Options;
use calorimeter_zoo::Device;
use chrono::{DateTime, Local};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a run cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A configuration file is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A device is not there.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Results cannot be written or read.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// Workers cannot be had.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// Somebody else uses the device.
    #[error("--require-idle: {device} is in use: {others}")]
    Busy {
        /// The device.
        device: String,
        /// Who.
        others: String,
    },
    /// Nothing tells who uses the device.
    #[error("--require-idle: nobody knows who else uses {device}: {why}")]
    Unwatched {
        /// The device.
        device: String,
        /// What is missing.
        why: String,
    },
    /// The filter is no regular expression.
    #[error("--filter {0}")]
    Filter(NoExpression),
    /// The filter leaves nothing.
    #[error("--filter {pattern:?} matches none of the {cases} cases; see their ids with --dry-run")]
    NothingMatches {
        /// What was given.
        pattern: String,
        /// How many cases there are without it.
        cases: usize,
    },
    /// The journal to resume holds no configuration of ours.
    #[error("the journal in {} does not hold the configuration it was made from: {cause}; give the file again", .dir.display())]
    NoConfig {
        /// The run's directory.
        dir: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
}

/// Everything that decides what a run does; kept in the journal, so that a run can be resumed without its files.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Request {
    /// The configuration files.
    pub sources: Vec<Source>,
    /// What is asked for without a file, after those of the files. Journals from before it was there are still resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Entry>,
    /// What the command line set over all of it.
    pub overrides: Overrides,
}

/// A run whose configuration, plan and devices are known to be right.
pub struct Prepared {
    request: Request,
    plan: Plan,
    /// What the files say of where results go.
    pub output_dir: Option<PathBuf>,
    /// What a reader should know of the files.
    pub notes: Vec<String>,
}

/// Where a run writes.
#[derive(Debug, Clone)]
pub struct Place {
    /// The folder of the journal and of our derived files.
    pub dir: PathBuf,
    /// The folder below which scripts written for torchao look for its CSV.
    pub output_dir: PathBuf,
}

/// What to show while a run goes on.
pub trait Show {
    /// The run begins.
    fn start(&mut self, _cases: usize, _already: usize) {}
    /// A case of a group is being worked on.
    fn touch(&mut self, _id: &str, _stage: Stage) {}
    /// A case has ended; its record is on disk.
    fn record(&mut self, _record: &Record) {}
    /// Whether to stop.
    fn interrupted(&self) -> bool {
        false
    }
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// Every record, those of an earlier part of a resumed run included, in the order of the plan.
    pub records: Vec<Record>,
    /// Files written.
    pub paths: Vec<PathBuf>,
    /// Derived files that could not be written; the journal is complete all the same.
    pub errors: Vec<SinkError>,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// The speed-ups of each recipe over all shapes.
    pub suite: Vec<SuiteSpeedup>,
}

impl Request {
    /// Resolves and plans for this machine; no device is opened.
    pub fn prepare(self) -> Result<Prepared, RunError> {
        self.prepare_for(devices::here())
    }

    /// Resolves and plans for the devices of a machine, without looking at this one.
    pub fn prepare_for(self, devices: &Devices) -> Result<Prepared, RunError> {
        let Document { mut entries, output_dir, notes } = dialects::read(&self.sources, devices)?;
        entries.extend(self.entries.iter().cloned());
        let entries = resolve(entries, &self.overrides, devices)?;
        let filter = match &self.overrides.filter {
            Some(pattern) => Some(expression::parse(pattern).map_err(RunError::Filter)?),
            None => None,
        };
        let cases = entries.iter().map(|e| e.tasks.len() * e.variants.len() * e.implementations.len()).sum();
        let plan = Plan::new(entries, filter.as_ref());
        if let Some(pattern) = self.overrides.filter.clone().filter(|_| plan.is_empty()) {
            return Err(RunError::NothingMatches { pattern, cases });
        }
        Ok(Prepared { request: self, plan, output_dir, notes })
    }

    /// The request that the journal of an earlier run holds.
    pub fn of_journal(dir: &Path) -> Result<Self, RunError> {
        let header = journal::read(dir)?.header;
        serde_json::from_value(header.config)
            .map_err(|error| RunError::NoConfig { dir: dir.to_owned(), cause: error.to_string() })
    }

    /// Tells runs of different content apart: a journal is resumed only by its own request.
    fn fingerprint(&self, plan: &Plan) -> String {
        // Where a file lies does not matter, what it says does; the cases also say what `auto` and a CSV of shapes meant.
        let texts: Vec<&str> = self.sources.iter().map(|source| source.text.as_str()).collect();
        let cases: Vec<&CaseId> = plan.cases().map(|(case, _)| &case.id).collect();
        let content = match self.entries.as_slice() {
            [] => serde_json::to_vec(&(texts, &self.overrides, cases)),
            entries => serde_json::to_vec(&(texts, entries, &self.overrides, cases)),
        };
        let content = content.unwrap_or_default();
        format!("{:016x}", fnv1a(&content))
    }
}

impl Prepared {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether its kernels are tuned.
    pub fn autotune(&self) -> Autotune {
        self.request.overrides.autotune
    }

    /// Runs the plan in a new directory.
    pub fn start(&self, place: &Place, executor: &mut dyn Executor, show: &mut dyn Show) -> Result<Outcome, RunError> {
        let (devices, in_use) = self.devices()?;
        let header = self.header(&devices);
        let journal = Journal::create(&place.dir, &header)?;
        let contents = JournalContents { header, records: vec![], resumed: vec![], summary: None, warnings: vec![] };
        self.go((devices, in_use), journal, contents, place, executor, show)
    }

    /// Goes on with a run that stopped early.
    pub fn resume(&self, place: &Place, executor: &mut dyn Executor, show: &mut dyn Show) -> Result<Outcome, RunError> {
        let (devices, in_use) = self.devices()?;
        let resumed = Resumed { time: now().to_rfc3339(), argv: std::env::args().collect() };
        let (journal, contents) = Journal::resume(&place.dir, &self.request.fingerprint(&self.plan), &resumed)?;
        self.go((devices, in_use), journal, contents, place, executor, show)
    }

    /// The devices, and who else uses them: that is asked before a worker of ours does.
    fn devices(&self) -> Result<(Vec<DiscoveredDevice>, InUse), RunError> {
        let found: Result<Vec<DiscoveredDevice>, DeviceError> =
            self.plan.devices().into_iter().map(devices::present).collect();
        let (found, mut in_use) = (found?, InUse::new());
        for one in found.iter().filter(|_| self.asks_who_else()) {
            let others = device_sensors::others(one.device, &one.facts());
            in_use.extend(used(one.device, others, self.request.overrides.require_idle)?);
        }
        Ok((found, in_use))
    }

    /// What is not timed is disturbed by nobody.
    fn asks_who_else(&self) -> bool {
        !self.request.overrides.untimed || self.request.overrides.require_idle
    }

    /// Who uses a device at the end that nobody else used at the beginning, and may have disturbed what was timed on it.
    fn newcomers(&self, devices: &HashMap<Device, DiscoveredDevice>, before: &InUse) -> Vec<String> {
        let asked = |found: &&DiscoveredDevice| {
            self.asks_who_else() && before.iter().all(|(device, _)| *device != found.device)
        };
        let others = |found: &DiscoveredDevice| {
            used(found.device, device_sensors::others(found.device, &found.facts()), false).ok()?
        };
        let mut came: InUse = devices.values().filter(asked).filter_map(others).collect();
        came.sort_unstable();
        came.into_iter().map(|(device, others)| format!("{device}, when the run ended: {others}")).collect()
    }

    fn header(&self, devices: &[DiscoveredDevice]) -> Header {
        let now = now();
        Header {
            run_id: run_id(&now),
            started: now.to_rfc3339(),
            argv: std::env::args().collect(),
            config: self.config(),
            config_fingerprint: self.request.fingerprint(&self.plan),
            plan_cases: self.plan.len() as u64,
            environment: environment::describe(devices),
        }
    }

    /// The request, from which a run is resumed, and what it was resolved to, for the reader.
    fn config(&self) -> serde_json::Value {
        let mut config = serde_json::to_value(&self.request).unwrap_or_default();
        let resolved = self.plan.entries().iter().map(ResolvedEntry::describe).collect();
        config["resolved"] = serde_json::Value::Array(resolved);
        config
    }

    fn go(
        &self,
        (devices, in_use): (Vec<DiscoveredDevice>, InUse),
        mut journal: Journal,
        contents: JournalContents,
        place: &Place,
        executor: &mut dyn Executor,
        show: &mut dyn Show,
    ) -> Result<Outcome, RunError> {
        let JournalContents { header, mut records, warnings, .. } = contents;
        let devices: HashMap<Device, DiscoveredDevice> =
            devices.into_iter().map(|found| (found.device, found)).collect();
        let finished: HashMap<CaseId, Status> = records.iter().map(|r| (r.case.id.clone(), r.outcome.status)).collect();
        show.start(self.plan.len(), finished.len());
        let mut lookers: Option<Option<Box<dyn Executor>>> = None;
        for group in self.plan.groups() {
            let found = &devices[&self.plan.entry(group).device];
            let assignment = self.assignment(group, found, place);
            let before: Vec<Option<Status>> =
                assignment.cases.iter().map(|case| finished.get(&case.id).copied()).collect();
            if before.iter().all(Option::is_some) {
                continue;
            }
            let (journal, records, started) = (&mut journal, &mut records, now().to_rfc3339());
            let mut watching =
                Watching { assignment: &assignment, before: &before, started, journal, records, show, error: None };
            self.refuse(group, &mut watching);
            // What was measured is measured again beside the rest: arms must alternate to be compared.
            let again = |arm: &usize| before[*arm].is_none_or(|status| status == Status::Ok);
            let arms: Vec<usize> =
                (0..group.len()).filter(again).filter(|&arm| group.arms()[arm].supported().is_ok()).collect();
            let timeout = self.plan.entry(group).timeout;
            let mut assignment = assignment.only(&arms);
            if looks(found.device, &assignment) {
                let looker = lookers.get_or_insert_with(|| executor.looker());
                assignment.seen = looked(looker.as_deref_mut(), &assignment, found, timeout, watching.show)?;
            }
            let mut translated = Translated { positions: &arms, inner: &mut watching };
            executor.run(&assignment, found, timeout, &mut translated)?;
            if let Some(error) = watching.error {
                return Err(error.into());
            }
            if show.interrupted() {
                break;
            }
        }
        // One that came after the last record interrupted nothing.
        let interrupted = show.interrupted() && records.len() < self.plan.len();
        let mut notes: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        notes.extend(in_use.iter().map(|(device, others)| format!("{device}: {others}")));
        notes.extend(self.newcomers(&devices, &in_use));
        notes.extend(self.notes.iter().cloned());
        self.sort(&mut records);
        let counts = count_by_status(&records);
        let (finished, suite) = (now().to_rfc3339(), speedups(&records));
        journal.finish(&Summary { finished, interrupted, counts, notes: notes.clone(), suite: suite.clone() })?;
        let run = Run { dir: place.dir.clone(), output_dir: place.output_dir.clone(), header, records };
        let written = write_all(&run);
        Ok(Outcome { records: run.records, paths: written.paths, errors: written.errors, interrupted, notes, suite })
    }

    fn sort(&self, records: &mut [Record]) {
        let order: HashMap<&CaseId, usize> =
            self.plan.cases().enumerate().map(|(index, (case, _))| (&case.id, index)).collect();
        records.sort_by_key(|record| order.get(&record.case.id).copied().unwrap_or(usize::MAX));
    }

    fn assignment(&self, group: &Group, found: &DiscoveredDevice, place: &Place) -> Assignment {
        let entry = self.plan.entry(group);
        let cases: Vec<Case> = group.arms().iter().map(|arm| arm.case().clone()).collect();
        let margin = noise::margin(found, entry.timing.margin);
        Assignment {
            against: (0..group.len()).map(|arm| group.against(arm)).collect(),
            sets: cases.iter().map(|case| found.sets(group.regime(), case.bytes.unwrap_or(0))).collect(),
            cases,
            device: found.facts(),
            folder: Some(place.dir.clone()),
            timing: (!self.request.overrides.untimed).then(|| Options { margin, ..entry.timing.clone() }),
            seen: Vec::new(),
            seed: entry.seed,
            mock: entry.mock.clone(),
        }
    }

    /// Records what is known not to run without asking a device.
    fn refuse(&self, group: &Group, watching: &mut Watching<'_>) {
        for (arm, case) in watching.assignment.cases.iter().enumerate() {
            if let Err(reason) = group.arms()[arm].supported() {
                watching.record(arm, Record::without_time(case.clone(), Status::Unsupported, reason));
            }
        }
    }
}

/// The devices that somebody else uses, and who.
type InUse = Vec<(Device, String)>;

/// Who else uses a device, if anybody is known to; an error where it must be idle and is not, or may not be.
fn used(
    device: Device,
    others: Result<Vec<String>, String>,
    require_idle: bool,
) -> Result<Option<(Device, String)>, RunError> {
    let name = device.to_string();
    match others {
        Err(why) if require_idle => Err(RunError::Unwatched { device: name, why }),
        Ok(others) if require_idle && !others.is_empty() => {
            Err(RunError::Busy { device: name, others: others.join("; ") })
        }
        Ok(others) if !others.is_empty() => Ok(Some((device, others.join("; ")))),
        _ => Ok(None),
    }
}

/// Whether the kernels of some case are wanted that no clock of ours sees: graphics APIs tell the time of launches alone.
fn looks(device: Device, assignment: &Assignment) -> bool {
    let wanted = |case: &Case| case.profiler || case.fusion.is_some();
    let timed = assignment.timing.is_some();
    timed && matches!(device, Device::Vulkan(_) | Device::Metal(_)) && assignment.cases.iter().any(wanted)
}

/// The kernels of each case, by a worker that times nothing else.
fn looked(
    looker: Option<&mut (dyn Executor + 'static)>,
    assignment: &Assignment,
    found: &DiscoveredDevice,
    timeout: Duration,
    show: &mut dyn Show,
) -> Result<Vec<Option<Seen>>, WorkerError> {
    let mut looking = Looking { assignment, seen: vec![None; assignment.cases.len()], show };
    if let Some(looker) = looker {
        looker.run(assignment, found, timeout, &mut looking)?;
    }
    Ok(looking.seen)
}

/// Keeps what a worker sees of kernels; why it may have seen nothing is found again when the case is measured.
struct Looking<'a> {
    assignment: &'a Assignment,
    seen: Vec<Option<Seen>>,
    show: &'a mut dyn Show,
}

impl Watch for Looking<'_> {
    fn touch(&mut self, case: usize, stage: Stage) {
        self.show.touch(&self.assignment.cases[case].id, stage);
    }

    fn record(&mut self, _: usize, _: Record) {}

    fn seen(&mut self, case: usize, seen: Seen) {
        self.seen[case] = Some(seen).filter(|seen| seen.passes > 0);
    }

    fn interrupted(&self) -> bool {
        self.show.interrupted()
    }
}

/// The folder name of a run that starts now.
pub fn run_id(now: &DateTime<Local>) -> String {
    now.format("%Y%m%d-%H%M%S").to_string()
}

/// The time here.
pub fn now() -> DateTime<Local> {
    Local::now()
}

/// Puts each record on disk, then shows it.
struct Watching<'a> {
    assignment: &'a Assignment,
    before: &'a [Option<Status>],
    /// When the group's turn came.
    started: String,
    journal: &'a mut Journal,
    records: &'a mut Vec<Record>,
    show: &'a mut dyn Show,
    error: Option<SinkError>,
}

impl Watch for Watching<'_> {
    fn touch(&mut self, case: usize, stage: Stage) {
        self.show.touch(&self.assignment.cases[case].id, stage);
    }

    fn record(&mut self, case: usize, record: Record) {
        if self.before[case].is_some() || self.error.is_some() {
            return;
        }
        let mut record = record;
        record.outcome.started = Some(self.started.clone());
        record.outcome.ended = Some(now().to_rfc3339());
        match self.journal.append(&record) {
            Ok(()) => {
                self.show.record(&record);
                self.records.push(record);
            }
            Err(error) => self.error = Some(error),
        }
    }

    fn interrupted(&self) -> bool {
        self.error.is_some() || self.show.interrupted()
    }
}

/// Positions of a part of an assignment, in the whole.
struct Translated<'a, 'b> {
    positions: &'a [usize],
    inner: &'a mut Watching<'b>,
}

impl Watch for Translated<'_, '_> {
    fn touch(&mut self, case: usize, stage: Stage) {
        self.inner.touch(self.positions[case], stage);
    }

    fn record(&mut self, case: usize, record: Record) {
        self.inner.record(self.positions[case], record);
    }

    fn interrupted(&self) -> bool {
        self.inner.interrupted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_must_be_idle_is_refused_if_that_cannot_be_known() {
        let said = |others, require_idle| match used(Device::Vulkan(1), others, require_idle) {
            Ok(used) => used.map(|(_, others)| others).unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        let unseen = || Err("no sensors".to_owned());
        let busy = || Ok(vec!["one".to_owned(), "two".to_owned()]);
        for (others, require_idle, expected) in [
            (Ok(vec![]), true, ""),
            (Ok(vec![]), false, ""),
            (unseen(), false, ""),
            (unseen(), true, "--require-idle: nobody knows who else uses vulkan:1: no sensors"),
            (busy(), false, "one; two"),
            (busy(), true, "--require-idle: vulkan:1 is in use: one; two"),
        ] {
            assert_eq!(said(others, require_idle), expected);
        }
    }
}
