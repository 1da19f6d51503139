//! A run: the plan's groups one after the other, each record on disk before anything else happens.

mod clocks;
mod contained;
mod desk;
mod error;
mod idle;
mod kernels;
mod place;
mod prepare;
mod request;
mod show;
mod surroundings;

pub use crate::host::now;
pub use error::RunError;
pub use place::{Place, run_id};
pub use request::Request;
pub use show::Show;

use crate::clock_lock::Locks;
use crate::devices::{self, DeviceError, DiscoveredDevice};
use crate::entries::{Autotune, ResolvedEntry};
use crate::environment;
use crate::host::command_line;
use crate::noise_floor::Floor;
use crate::plan::{Arm, Group, Plan};
use crate::platforms;
use crate::suite_speedups::speedups;
use crate::worker::{AssignedCase, Assignment, Executor, Listener, WorkerError};
use calorimeter_case::record::SuiteSpeedup;
use calorimeter_case::{CaseId, Device, Record, Status};
use calorimeter_sinks::journal::{Header, JournalContents, Resumed, Summary, count_by_status};
use calorimeter_sinks::{Journal, Run, SinkError, write_all};
use calorimeter_timing::Options;
use desk::Desk;
use idle::{InUse, used};
use kernels::Lookout;
use std::collections::HashMap;
use std::path::PathBuf;

/// A run whose configuration, plan and devices are known to be right.
pub struct Prepared {
    request: Request,
    plan: Plan,
    /// What the files say of where results go.
    pub output_dir: Option<PathBuf>,
    /// What a reader should know of the files.
    pub notes: Vec<String>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// Every record, those of an earlier part of a resumed run included, in the order of the plan. Their series are in the
    /// journal.
    pub records: Vec<Record>,
    /// Files written.
    pub paths: Vec<PathBuf>,
    /// Derived files that could not be written; the journal is complete all the same.
    pub errors: Vec<SinkError>,
    /// Whether it ended before its last case.
    pub interrupted: bool,
    /// Why it ended early, where workers could no longer be had.
    pub stopped: Option<WorkerError>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// The speed-ups of each recipe over all shapes.
    pub suite: Vec<SuiteSpeedup>,
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

    /// How many processes measure each case.
    pub fn launches(&self) -> u32 {
        self.request.overrides.launches.unwrap_or(1)
    }

    /// Runs the plan in a new directory.
    pub fn start(&self, place: &Place, executor: &mut dyn Executor, show: &mut dyn Show) -> Result<Outcome, RunError> {
        let (devices, in_use) = self.devices()?;
        let _locks = self.lock_clocks(&devices)?;
        let header = self.header(&devices, place);
        let journal = Journal::create(&place.dir, &header)?;
        let contents = JournalContents { header, records: vec![], resumed: vec![], summary: None, warnings: vec![] };
        self.run((devices, in_use), (journal, contents), place, executor, show)
    }

    /// Goes on with a run that stopped early.
    pub fn resume(&self, place: &Place, executor: &mut dyn Executor, show: &mut dyn Show) -> Result<Outcome, RunError> {
        if let Some(link) = contained::link_out(place) {
            return Err(RunError::LeadsOut { link });
        }
        let (devices, in_use) = self.devices()?;
        let _locks = self.lock_clocks(&devices)?;
        let environment = Some(environment::describe(&devices));
        let resumed = Resumed { time: now().to_rfc3339(), argv: command_line(), environment };
        let (journal, contents) = Journal::resume(&place.dir, &self.request.fingerprint(&self.plan), &resumed)?;
        self.run((devices, in_use), (journal, contents), place, executor, show)
    }

    /// The devices, and who else uses them: that is asked before a worker of ours does.
    fn devices(&self) -> Result<(Vec<DiscoveredDevice>, InUse), RunError> {
        let found: Result<Vec<DiscoveredDevice>, DeviceError> =
            self.plan.devices().into_iter().map(devices::present).collect();
        let (found, mut in_use) = (found?, InUse::new());
        for one in found.iter().filter(|_| self.asks_who_else()) {
            let others = platforms::of(one.device).others(one.device, &one.facts());
            in_use.extend(used(one.device, others, self.request.overrides.require_idle)?);
        }
        Ok((found, in_use))
    }

    /// The clocks that are locked as long as this is kept.
    fn lock_clocks(&self, devices: &[DiscoveredDevice]) -> Result<Locks, RunError> {
        self.request.overrides.lock_clocks.map_or(Ok(Locks::default()), |clock| Ok(Locks::hold(devices, clock)?))
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
            let others = platforms::of(found.device).others(found.device, &found.facts());
            used(found.device, others, false).ok()?
        };
        let mut came: InUse = devices.values().filter(asked).filter_map(others).collect();
        came.sort_unstable();
        came.into_iter().map(|(device, others)| format!("{device}, when the run ended: {others}")).collect()
    }

    fn header(&self, devices: &[DiscoveredDevice], place: &Place) -> Header {
        let now = now();
        Header {
            run_id: place.run_id(&now),
            started: now.to_rfc3339(),
            argv: command_line(),
            config: self.config(),
            config_fingerprint: self.request.fingerprint(&self.plan),
            plan_cases: self.plan.len() as u64,
            environment: environment::describe(devices),
            output_dir: Some(place.told()),
        }
    }

    /// The request, from which a run is resumed, and what it was resolved to, for the reader.
    fn config(&self) -> serde_json::Value {
        let mut config = serde_json::to_value(&self.request).unwrap_or_default();
        let resolved = self.plan.entries().iter().map(ResolvedEntry::describe).collect();
        config["resolved"] = serde_json::Value::Array(resolved);
        config
    }

    /// Group by group: each record is on disk before the next case starts, and the derived files come last.
    fn run(
        &self,
        (devices, in_use): (Vec<DiscoveredDevice>, InUse),
        (journal, contents): (Journal, JournalContents),
        place: &Place,
        executor: &mut dyn Executor,
        show: &mut dyn Show,
    ) -> Result<Outcome, RunError> {
        let JournalContents { header, mut records, warnings, resumed, .. } = contents;
        // A list that doubles when it is full holds twice what it needs.
        records.reserve_exact(self.plan.len().saturating_sub(records.len()));
        let devices: HashMap<Device, DiscoveredDevice> = devices.into_iter().map(|one| (one.device, one)).collect();
        let earlier: HashMap<CaseId, Status> =
            records.iter().map(|record| (record.case.id.clone(), record.outcome.status)).collect();
        show.start(self.plan.len(), earlier.len());
        let mut desk = Desk { journal, records, earlier, show, turn: String::new(), error: None };
        let floors: HashMap<Device, Floor> = self.floors(devices.values());
        let mut lookout = Lookout::default();
        let mut stopped = None;
        for group in self.plan.drawn() {
            if group.arms().iter().all(|arm| desk.earlier.contains_key(arm.id())) {
                continue;
            }
            let (device, timeout) = (&devices[&self.plan.entry(group).device], self.plan.entry(group).timeout);
            desk.turn = now().to_rfc3339();
            refused(group).for_each(|record| desk.take(record));
            let mut assignment = self.assignment(group, device, &floors[&device.device], place, &desk);
            let looked = lookout.look(&mut assignment, device, timeout, executor, desk.show);
            stopped = looked.and_then(|()| executor.run(&assignment, device, timeout, &mut desk)).err();
            if stopped.is_some() || desk.interrupted() {
                break;
            }
        }
        let Desk { journal, mut records, show, error, .. } = desk;
        if let Some(error) = error {
            return Err(error.into());
        }
        // One that came after the last record interrupted nothing.
        let interrupted = (stopped.is_some() || show.interrupted()) && records.len() < self.plan.len();
        let mut notes: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        notes.extend(in_use.iter().map(|(device, others)| format!("{device}: {others}")));
        let mut outdated: Vec<String> = floors.into_values().filter_map(|floor| floor.note).collect();
        outdated.sort_unstable();
        notes.extend(outdated);
        notes.extend(self.newcomers(&devices, &in_use));
        notes.extend(self.notes.iter().cloned());
        notes.extend(surroundings::changed(&header.environment, &resumed));
        notes.extend(clocks::mixed(&records));
        self.sort(&mut records);
        if !resumed.is_empty() {
            notes.extend(contained::keep_within(&mut records, place));
        }
        let counts = count_by_status(&records);
        let (finished, suite) = (now().to_rfc3339(), speedups(&records));
        let summary = Summary { finished, interrupted, counts, notes: notes.clone(), suite: suite.clone() };
        let stored = journal.finish(&summary)?;
        let run = Run { dir: place.dir.clone(), output_dir: place.output_dir.clone(), header, records, stored };
        let written = write_all(&run);
        let (records, errors) = (run.records, written.errors);
        Ok(Outcome { records, paths: written.paths, errors, interrupted, stopped, notes, suite })
    }

    fn sort(&self, records: &mut [Record]) {
        let order: HashMap<&CaseId, usize> = self.plan.ids().enumerate().map(|(index, id)| (id, index)).collect();
        // In place: a copy of all records is as large as they are.
        records.sort_by_cached_key(|record| order.get(&record.case.id).copied().unwrap_or(usize::MAX));
    }

    /// What was found of the devices' noise; where nothing is timed it does not matter.
    fn floors<'a>(&self, devices: impl Iterator<Item = &'a DiscoveredDevice>) -> HashMap<Device, Floor> {
        let floor = |found| if self.request.overrides.untimed { Floor::default() } else { Floor::of(found) };
        devices.map(|found| (found.device, floor(found))).collect()
    }

    /// What a worker is told of a group: the cases that can run and are still wanted.
    fn assignment(
        &self,
        group: &Group,
        device: &DiscoveredDevice,
        floor: &Floor,
        place: &Place,
        desk: &Desk<'_>,
    ) -> Assignment {
        let entry = self.plan.entry(group);
        let margin = floor.margin(entry.timing.margin);
        let wanted = |arm: &Arm| arm.supported().is_ok() && desk.wants(arm.id());
        let cases = group.arms().iter().enumerate().filter(|(_, arm)| wanted(arm)).map(|(at, arm)| AssignedCase {
            case: arm.case(),
            against: group
                .against(at)
                .map(|at| &group.arms()[at])
                .filter(|arm| wanted(arm))
                .map(|arm| arm.id().clone()),
            sets: devices::sets(device, group.regime(), arm.case().bytes.unwrap_or(0)),
            kernels: None,
        });
        Assignment {
            cases: cases.collect(),
            device: device.facts(),
            folder: Some(place.dir.clone()),
            timing: (!self.request.overrides.untimed).then(|| Options { margin, ..entry.timing.clone() }),
            seed: entry.seed,
            mock: entry.mock.clone(),
        }
    }
}

/// The records of cases that are known not to run without asking a device.
fn refused(group: &Group) -> impl Iterator<Item = Record> + '_ {
    let refused = |arm: &Arm| {
        let reason = arm.supported().err()?;
        Some(Record::without_time(arm.case(), Status::Unsupported, reason))
    };
    group.arms().iter().filter_map(refused)
}
