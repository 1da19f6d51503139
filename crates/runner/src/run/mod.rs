//! A run: measures the groups of a plan; each record is on disk before the next case starts.

mod at_once;
mod clocks;
mod company;
mod contained;
mod crew;
mod desk;
mod error;
mod found_devices;
mod idle;
mod kernels;
mod lanes;
mod order;
mod outcome;
mod place;
mod prepare;
mod request;
mod room;
mod surroundings;

pub use crate::host::now;
pub use crate::worker::{Event, Listener};
pub use error::RunError;
pub use order::{sort_as_planned, sort_briefs_as_planned};
pub use outcome::Outcome;
pub use place::{Place, run_id};
pub use request::Request;

use crate::entries::Autotune;
use crate::environment;
use crate::host::command_line;
use crate::plan::{Group, Plan, Predicted};
use crate::worker::Executor;
use at_once::AtOnce;
use calorimeter_case::{CaseId, Implementation};
use calorimeter_sinks::Journal;
use calorimeter_sinks::journal::{Header, JournalContents, Resumed};
use crew::Crew;
use desk::Desk;
use found_devices::FoundDevices;
use kernels::Lookout;
use outcome::Ended;
use std::path::PathBuf;

/// Run whose configuration and plan are validated.
pub struct Prepared {
    request: Request,
    plan: Plan,
    /// Output directory of the configuration files.
    pub output_dir: Option<PathBuf>,
    /// Notes about the configuration files.
    pub notes: Vec<String>,
}

impl Prepared {
    /// Plan of the run.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Autotune setting.
    pub fn autotune(&self) -> Autotune {
        self.request.overrides.autotune
    }

    /// Number of processes that measure each case.
    pub fn launches(&self) -> u32 {
        self.request.overrides.launches.unwrap_or(1)
    }

    /// Predicted duration of every supported case, with its implementation.
    pub fn predicted(&self) -> impl Iterator<Item = (CaseId, Implementation, Predicted)> {
        let (times, untimed) = (f64::from(self.launches()), self.request.overrides.untimed);
        self.plan.predicted().map(move |(case, predicted)| {
            let predicted = if untimed {
                Predicted { prepared: predicted.prepared, ..Predicted::default() }
            } else {
                predicted * times
            };
            (case.id, case.implementation, predicted)
        })
    }

    /// Runs the plan in a new directory. The listener receives the number of cases, the current stage of each, and each
    /// record once it is on disk.
    pub fn start(
        &self,
        place: &Place,
        executor: &mut dyn Executor,
        listener: &mut dyn Listener,
    ) -> Result<Outcome, RunError> {
        let devices = FoundDevices::look(self.plan.devices(), &self.request.overrides)?;
        let _locks = devices.lock_clocks(&self.request.overrides)?;
        let header = self.header(&devices, place);
        let journal = Journal::create(&place.dir, &header)?;
        let contents = JournalContents { header, records: vec![], resumed: vec![], summary: None, warnings: vec![] };
        self.run(&devices, (journal, contents), place, executor, listener)
    }

    /// Resumes a run that stopped early.
    pub fn resume(
        &self,
        place: &Place,
        executor: &mut dyn Executor,
        listener: &mut dyn Listener,
    ) -> Result<Outcome, RunError> {
        if let Some(link) = contained::link_out(place) {
            return Err(RunError::LeadsOut { link });
        }
        let devices = FoundDevices::look(self.plan.devices(), &self.request.overrides)?;
        let _locks = devices.lock_clocks(&self.request.overrides)?;
        let environment = Some(environment::describe(&devices.all));
        let resumed = Resumed { time: now().to_rfc3339(), argv: command_line(), environment };
        let journal = Journal::resume(&place.dir, &self.request.fingerprint(&self.plan), &resumed)?;
        self.run(&devices, journal, place, executor, listener)
    }

    fn header(&self, devices: &FoundDevices, place: &Place) -> Header {
        let now = now();
        Header {
            run_id: place.run_id(&now),
            started: now.to_rfc3339(),
            argv: command_line(),
            config: self.request.with_plan(&self.plan),
            config_fingerprint: self.request.fingerprint(&self.plan),
            plan_cases: self.plan.len() as u64,
            environment: environment::describe(&devices.all),
            output_dir: Some(place.as_seen_from_run()),
        }
    }

    /// Measures, then writes the summary and the derived files.
    fn run(
        &self,
        devices: &FoundDevices,
        (journal, contents): (Journal, JournalContents),
        place: &Place,
        executor: &mut dyn Executor,
        listener: &mut dyn Listener,
    ) -> Result<Outcome, RunError> {
        let JournalContents { header, records, warnings, resumed, .. } = contents;
        let (plan, untimed) = (&self.plan, self.request.overrides.untimed);
        let mut writer = Desk::new(journal, records, plan.len(), listener);
        let floors = &devices.floors();
        let mut dispatcher = Crew { executor, lookout: Lookout::default(), plan, place, devices, floors, untimed };
        let measured = measure(plan, &mut dispatcher, &mut writer);
        let notes = [&self.notes[..], &measured.notes].concat();
        let stopped = measured.stopped();
        Ended { plan, place, devices, floors, notes: &notes, header, resumed, warnings, stopped }.finish(writer)
    }
}

/// Measures concurrent groups first, then the remaining ones sequentially; each record is on disk before the next case
/// starts.
fn measure(plan: &Plan, dispatcher: &mut Crew<'_>, writer: &mut Desk<'_>) -> AtOnce {
    let mut concurrent = at_once::measure(dispatcher, writer);
    let groups = plan.drawn();
    for (at, &group) in groups.iter().enumerate() {
        if writer.interrupted() {
            break;
        }
        if writer.is_complete(group) || concurrent.has_seen_to(plan, group) {
            continue;
        }
        let device = plan.entry(group).device;
        writer.begin(group, device);
        let is_next = |other: &&&Group| plan.entry(other).device == device && !writer.is_complete(other);
        let next = groups[at + 1..].iter().find(is_next).copied();
        if let Err(why) = dispatcher.measure(group, next, writer) {
            concurrent.lost.push((device, why));
            break;
        }
    }
    concurrent
}
